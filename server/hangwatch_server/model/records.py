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
    end_reason: str  # "progress", "restarted", "job finished", "job failed"
    acknowledged_by: str
    acknowledged_at: datetime | None
    snoozed_until: datetime | None
    verdict: Verdict
    captures: tuple[str, ...] = ()
    history: tuple[IncidentEvent, ...] = ()


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
class TreeNode:
    """A frame of the merged stack tree with the ranks whose stack passes through it."""

    name: str
    file: str
    line: int
    ranks: str
    count: int
    is_framework: bool
    is_native: bool
    is_frozen: bool | None  # None: fewer than two captures to compare
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
class Tree:
    capture: str
    roots: tuple[TreeNode, ...]
    classes: tuple[StackClass, ...]
    missing: tuple[PartRow, ...]
