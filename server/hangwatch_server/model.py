"""Plain data that the rooms of the server hand to each other: no behaviour, no I/O, no clock.

Field names are the REST contract's (DESIGN section 6), so that what is stored, served and shown is one
thing. Rank sets are range text wherever they can be long. Durations are seconds, wall times aware UTC.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from hangwatch_agent import wire


class State(StrEnum):
    """What a job does as a whole (DESIGN section 4)."""

    STARTING = "starting"
    HEALTHY = "healthy"
    EXPECTED_WAIT = "expected_wait"
    SLOW = "slow"
    SUSPECTED = "suspected"
    HUNG = "hung"
    UNKNOWN = "unknown"
    FINISHED = "finished"
    FAILED = "failed"


class Kind(StrEnum):
    """What the communication looks like (DESIGN section 5)."""

    MISSING_RANKS = "missing_ranks"
    MISMATCH = "mismatch"
    DEADLOCK = "deadlock"
    UNMATCHED_P2P = "unmatched_p2p"
    STALLED_COLLECTIVE = "stalled_collective"
    INCOMPLETE_RENDEZVOUS = "incomplete_rendezvous"
    NO_PROGRESS = "no_progress"
    NONE = "none"


class Condition(StrEnum):
    """What a culprit is doing (DESIGN section 5)."""

    EXITED = "exited"
    KILLED = "killed"
    NODE_LOST = "node_lost"
    STOPPED = "stopped"
    UNINTERRUPTIBLE = "uninterruptible"
    GIL_HELD = "gil_held"
    IN_DATALOADER = "in_dataloader"
    IN_CHECKPOINT = "in_checkpoint"
    IN_COMPILE = "in_compile"
    IN_LOCK = "in_lock"
    IN_USER_CODE = "in_user_code"
    IN_COLLECTIVE = "in_collective"
    GPU_BUSY = "gpu_busy"
    FINISHED = "finished"
    UNRESPONSIVE = "unresponsive"
    UNKNOWN = "unknown"


class Link(StrEnum):
    """Whether the agent of a rank's node is heard."""

    LIVE = "live"
    LATE = "late"  # over 5 s silent
    LOST = "lost"  # over 20 s silent, or its connection closed and did not come back


class Activity(StrEnum):
    """What a main thread's stack shows."""

    COLLECTIVE = "collective"  # inside a blocking call of torch.distributed or a wait on its work
    DATALOADER = "dataloader"
    CHECKPOINT = "checkpoint"
    COMPILE = "compile"
    MODEL_LOADING = "model_loading"
    EVALUATION = "evaluation"
    LOCK = "lock"
    RENDEZVOUS = "rendezvous"  # inside init_process_group, new_group or a store call
    SHUTDOWN = "shutdown"  # destroy_process_group, atexit, threading._shutdown
    USER_CODE = "user_code"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class StackFacts:
    """What the captures of one rank's process say so far; made by the `stacks` room."""

    pid: int
    age_s: float  # of the newest capture
    where: str  # "train.py:88 in __getitem__", the innermost frame of the user's own code
    leaf: str  # the innermost frame of all: "selectors.py:415 in select"
    activity: Activity
    op: str = ""  # the collective's function name when activity is COLLECTIVE
    detail: str = ""  # one clause for people: "waits for a batch from its loader workers"
    user_path: tuple[wire.Frame, ...] = ()  # frames of the user's own code, outermost first
    is_in_backward: bool = False
    is_in_forward: bool = False  # of DistributedDataParallel
    is_in_join: bool = False  # inside torch.distributed.algorithms.join
    same_leaf_captures: int = 1  # newest captures in a row with the same stack
    same_leaf_s: float = 0.0  # time between the first and the last of them
    capture: str = ""  # id of the newest capture
    lock_holder: str = ""  # for LOCK: the frame of the thread that seems to hold it


@dataclass(frozen=True, slots=True, kw_only=True)
class RankView:
    """One rank at the moment of a snapshot. Ages inside `beat` are `age_s` older by now."""

    rank: int
    node: str  # "" while no agent has reported it
    link: Link
    age_s: float  # since its newest heartbeat was received
    beat: wire.RankBeat | None  # None: expected by the world size, never reported
    stack: StackFacts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    gid: str
    name: str
    description: str
    backend: str
    ranks: tuple[int, ...]  # sorted global ranks
    epoch: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything known of one job attempt at one moment; the input of `detect` and `diagnose`."""

    job: str
    attempt: int
    world_size: int
    ranks: dict[int, RankView]  # one for each of 0..world_size-1
    groups: dict[str, GroupView]
    taken_s: float  # the server's monotonic clock
    age_s: float = 0.0  # since the first rank of this attempt was seen


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
    """Rank `rank` waits in `waits_in` for the ranks `for_`; the last step names what a culprit does."""

    rank: int
    waits_in: str  # "dp-1 all_reduce #29"; for the last step the culprit's doing
    for_: tuple[int, ...] = field(metadata={"serialization_alias": "for"})  # at most 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    kind: str  # "counters", "stack", "process", "capture", "node", "call", "rendezvous"
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
    """One row of "who waits for whom" as the page draws it: `ranks` wait in `call` for `missing`."""

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
    is_hard: bool = False  # needs no waiting: process gone, mismatch, cycle (DESIGN section 4)
    stalled_s: float = 0.0  # age of the oldest front involved
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job as lists and pages show it."""

    id: str
    name: str
    attempt: int
    world_size: int
    reporting: int
    state: State
    verdict: Verdict
    nodes: tuple[str, ...]
    depth: wire.Depth
    first_seen: datetime
    last_seen: datetime
    progress_age_s: float | None  # since any rank finished any collective; None when never
    script: str = ""
    step: int | None = None
    is_live: bool = True  # False: known from the database only


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRow:
    """One rank as `GET /jobs/{id}/ranks` and the rank grid show it."""

    rank: int
    node: str
    local_rank: int | None
    pid: int | None
    state: str  # "healthy", "waiting", "culprit", "silent", "gone", "unknown", "finished"
    link: Link
    depth: wire.Depth
    age_s: float | None  # since last heard
    process_state: str  # R S D T Z or "gone"
    step: int | None
    phase: str
    waits_in: str  # "dp-1 all_reduce #29" or ""
    waits_s: float | None
    condition: Condition | None  # for culprits
    where: str
    cpu_share: float | None = None
    gpu: int | None = None
    lacks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    rank: int
    seq: int | None  # newest collective entered
    op: str  # of the front, "" when in none
    is_waiting: bool
    is_behind: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """One group as `GET /jobs/{id}/groups` shows it; `members` only for a single group."""

    gid: str
    name: str
    description: str
    backend: str
    ranks: str
    size: int
    epoch: int
    at: int | None  # the front-most collective entered by any member
    op: str
    behind: str  # range text of members that have not entered it
    waiting: str
    stalled_s: float
    members: tuple[GroupMember, ...] = ()


class IncidentState(StrEnum):
    OPEN = "open"  # suspected: hidden, no alert
    CONFIRMED = "confirmed"
    RESOLVED = "resolved"  # progress came back
    ENDED = "ended"  # job finished, failed or restarted
    PRUNED = "pruned"  # a suspicion that progress cleared


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


class CaptureState(StrEnum):
    TAKING = "taking"
    COMPLETE = "complete"
    PARTIAL = "partial"  # some parts did not come before the deadline


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


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    name: str
    link: Link
    version: str
    age_s: float | None
    ranks: int
    jobs: tuple[str, ...]
    stacks: str  # "" = available
    stacks_remedy: str
    depth: wire.Depth
    incidents_30d: int
    dropped: int
    last_seen: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelinePoint:
    """How fast a job's ranks made collective calls at one moment of the last half hour."""

    ago_s: float
    calls_per_s: float  # per reporting rank
    state: State


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """The answer to an epilog or preStop hook that asks whether the job may be torn down."""

    evidence_stored: bool
    state: State
    incident: str | None = None
