"""What is believed about a job: the finding of `diagnose`, the verdict of the REST contract."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from hangwatch_server.model.words import Condition, Kind, State


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRef:
    id: str
    name: str
    ranks: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprit:
    rank: int
    node: str
    pid: int | None
    gpu: int | None
    condition: Condition
    where: str  # "" when no stack is at hand
    detail: str = ""  # one clause: "worker 831 is in D state in nfs4_wait"


@dataclass(frozen=True, slots=True, kw_only=True)
class PathStep:
    """Rank `rank` waits in `waits_in` for the ranks `for_`; the last step is a culprit's doing."""

    rank: int
    waits_in: str  # "dp-1 all_reduce #29"; for the last step the culprit's doing
    for_: tuple[int, ...] = field(metadata={"serialization_alias": "for"})  # at most 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    kind: str  # what it is of: "counters", "stack", "gpu", "ras", "straggler", "cause", …
    text: str
    capture: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    reporting: int
    world_size: int
    silent: str  # range text


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    advice: str = "none"  # none, wait, investigate, restart, restart_excluding
    exclude_nodes: tuple[str, ...] = ()
    evidence_stored: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    suspect_after_s: float
    confirm_after_s: float
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitEdge:
    """One row of "who waits for whom" on the page: `ranks` wait in `call` for `missing`."""

    ranks: str
    call: str
    missing: str
    where: str = ""  # one stack's user frame among the waiting ranks


@dataclass(frozen=True, slots=True, kw_only=True)
class MismatchSide:
    """The ranks that made one of the differing calls, and from where."""

    ranks: str
    call: str  # "all_reduce [4] float"
    where: str
    is_odd: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """Calls that a rank left out (`calls` above 0) or added (below 0), `ago` of its calls ago."""

    rank: int
    calls: int
    op: str
    ago: int
    where: str = ""  # the line of that call, where call sites are noted


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Another cause beside the main one, as old and as certain: to mend one uncovers the other."""

    kind: Kind
    summary: str
    culprit_ranks: str
    waiting: str
    group: GroupRef | None = None
    seq: int | None = None
    op: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What `diagnose` says of a snapshot: kind and who, without any decision about time."""

    kind: Kind
    summary: str = ""
    confidence: float = 0.0
    group: GroupRef | None = None
    seq: int | None = None
    op: str = ""
    culprits: tuple[Culprit, ...] = ()  # at most 64
    culprit_ranks: str = ""
    besides: tuple[Culprit, ...] = ()  # of other causes that are as old and as certain
    causes: tuple[Cause, ...] = ()  # those other causes
    waiting: str = ""
    path: tuple[PathStep, ...] = ()
    edges: tuple[WaitEdge, ...] = ()
    cycle: tuple[PathStep, ...] = ()
    sides: tuple[MismatchSide, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    hints: tuple[str, ...] = ()
    coverage: Coverage = field(
        default_factory=lambda: Coverage(reporting=0, world_size=0, silent="")
    )
    is_hard: bool = False  # needs no waiting: process gone, mismatch, cycle
    is_presumed: bool = False  # nothing says that the culprits are missing, nobody else may be
    stalled_s: float = 0.0  # age of the oldest front involved
    shift: Shift | None = None  # a call skipped or added earlier, which explains the rest
    key: str = ""  # stable text of kind + group + seq + culprits: equal findings have equal keys


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What we believe about a job now: the REST contract's verdict."""

    job: str
    name: str
    attempt: int
    index: int
    state: State
    kind: Kind
    confidence: float
    since: datetime
    stalled_s: float
    summary: str
    group: GroupRef | None
    seq: int | None
    op: str
    culprits: tuple[Culprit, ...]
    culprit_ranks: str
    waiting: str
    path: tuple[PathStep, ...]
    edges: tuple[WaitEdge, ...]
    cycle: tuple[PathStep, ...]
    sides: tuple[MismatchSide, ...]
    evidence: tuple[Evidence, ...]
    hints: tuple[str, ...]
    coverage: Coverage
    action: Action
    limits: Limits
    incident: str | None = None
    shift: Shift | None = None  # a call skipped or added earlier, which explains the rest
    causes: tuple[Cause, ...] = ()  # beside the main one; their culprits are among `culprits`
