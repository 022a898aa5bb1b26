"""Jobs, ranks, groups and nodes as lists and pages show them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from hangwatch_agent import wire
from hangwatch_server.model.verdict import Verdict
from hangwatch_server.model.words import Condition, Link, State


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
    signature: str = ""  # of its newest stack; "" without one


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
    family: str = ""  # the name without its number, which its siblings share
    payload: str = ""  # of the call that is waited in: "26 MB float"
    members: tuple[GroupMember, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeHistory:
    """What a node's ranks have cost others of late."""

    incidents: int = 0
    jobs: int = 0  # that had them
    gpu_hours_lost: float = 0.0  # of the ranks that waited for it, one GPU each
    last_incident_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One dimension of a mesh: ranks that differ only in it lie `stride` apart."""

    name: str  # "tp", "dp", …; "" for groups without a name, and where there is no group
    size: int
    stride: int
    groups: int  # process groups along this axis; 0: it follows from the other axes
    family: str = ""  # what its groups are called without their number


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Groups of one name but for its number, and of one size, as one line of a table."""

    name: str
    size: int
    count: int
    at_least: int | None  # the newest collective entered, of the group that is furthest back
    at_most: int | None
    stalled: int  # of these groups


@dataclass(frozen=True, slots=True, kw_only=True)
class Mesh:
    """How a job's groups lie over its ranks; without axes where they make no mesh."""

    world_size: int
    axes: tuple[Axis, ...] = ()  # the innermost first: rank = sum of place times stride
    families: tuple[Family, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """How far a rank is behind the front of one of its groups, in calls."""

    rank: int
    gid: str
    seq: int | None  # newest collective entered; None where nobody can say
    lag: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthRow:
    """Nodes of a job that are seen equally deep, and what would let us see more."""

    nodes: tuple[str, ...]
    ranks: int
    reporting: int
    depth: wire.Depth
    link: Link
    lacks: tuple[str, ...]


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
    gpu_hours_lost_30d: float = 0.0  # waited for culprits here; see docs/views.md
    last_incident_at: datetime | None = None  # of the 30 days
    clock_ahead_s: float | None = None  # of the server's; None while the agent does not say it


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelinePoint:
    """How fast a job's ranks made collective calls at one moment of its last half hour."""

    ago_s: float
    calls_per_s: float  # per reporting rank
    state: State
    phase: str = ""  # that most of the ranks in a phase announce
    attempt: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """The answer to an epilog or preStop hook that asks whether the job may be torn down."""

    evidence_stored: bool
    state: State
    incident: str | None = None
