"""What outlives a job: incidents with their history, captures and their merged stacks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from hangwatch_agent import wire
from hangwatch_server.model.verdict import Verdict
from hangwatch_server.model.words import Activity, CaptureState, IncidentState, Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentEvent:
    """One row of an incident's history: what changed, when and why, and who did it."""

    at: datetime
    old: str
    new: str
    why: str
    by: str = ""  # token name, "" for Hangwatch itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """A note that somebody left on an incident."""

    at: datetime
    by: str  # token name
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    id: str
    job: str
    job_name: str
    attempt: int
    state: IncidentState
    kind: Kind
    summary: str
    culprit_ranks: str
    culprit_nodes: tuple[str, ...]
    opened_at: datetime
    confirmed_at: datetime | None
    ended_at: datetime | None
    end_reason: str  # "progress", "restarted as attempt 2", "job finished", "job failed"
    acknowledged_by: str
    acknowledged_at: datetime | None
    snoozed_until: datetime | None
    verdict: Verdict
    captures: tuple[str, ...] = ()
    history: tuple[IncidentEvent, ...] = ()
    is_snoozed_to_end: bool = False  # until the job ends, and `snoozed_until` at the latest
    comments: tuple[Comment, ...] = ()  # oldest first


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRow:
    """Whether one rank's part of a capture arrived, and if not why not."""

    rank: int
    node: str
    pid: int | None
    has_stacks: bool
    has_entries: bool
    reason: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RankCapture:
    """One rank's share of a capture: whether it came, and if not why not."""

    capture: str
    attempt: int
    incident: str | None
    requested_at: datetime
    requested_by: str
    has_stacks: bool
    has_entries: bool
    reason: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    id: str
    job: str
    attempt: int
    incident: str | None
    state: CaptureState
    requested_at: datetime
    requested_by: str
    ranks: str
    kinds: tuple[str, ...]
    native: bool
    parts: tuple[PartRow, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """Where ranks were in the capture before, whose stack is another one now."""

    ranks: str
    count: int
    where: str  # "train.py:141 in train"
    leaf: str  # the innermost frame: "all_reduce"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureSummary:
    """What a capture has brought so far, without its parts."""

    id: str
    state: CaptureState
    requested_at: datetime
    stored_at: datetime | None  # of its newest part; None while none came
    requested_by: str
    ranks: str
    kinds: tuple[str, ...]
    stacks: int  # ranks with stacks
    entries: int  # ranks with recorder entries
    missing: int  # ranks that came without either


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeNode:
    """A frame of the merged stack tree with the ranks whose stack passes through it.

    `moved` are those of them whose stack was another one in the capture before. `signatures` and
    `earlier` speak of the stacks that end here.
    """

    name: str
    file: str
    line: int
    ranks: str
    count: int
    is_framework: bool
    is_native: bool
    is_frozen: bool | None  # None: fewer than two captures to compare
    moved: str = ""
    signatures: tuple[str, ...] = ()
    earlier: tuple[Earlier, ...] = ()
    children: tuple[TreeNode, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StackClass:
    """Ranks whose main thread has the same stack; odd (smaller) classes come first."""

    signature: str
    ranks: str
    count: int
    activity: Activity
    where: str
    frames: tuple[wire.Frame, ...]  # innermost first
    is_frozen: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Ranks that went from one stack to another between two captures, or stayed in theirs."""

    ranks: str
    count: int
    before: str  # "train.py:141 in train"
    after: str
    is_frozen: bool
    signature: str  # of the later stack


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two captures of one job, the earlier one first."""

    before: Capture
    after: Capture
    moved: str
    frozen: str
    only_before: str
    only_after: str
    moves: tuple[Move, ...]  # moving ones first, then fewest ranks


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    capture: str
    roots: tuple[TreeNode, ...]
    classes: tuple[StackClass, ...]
    missing: tuple[PartRow, ...]
    before: str = ""  # id of the capture that it is compared with, "" for none or several
    sources: tuple[wire.Source, ...] = ()  # what the user's lines say, where an agent has read them
