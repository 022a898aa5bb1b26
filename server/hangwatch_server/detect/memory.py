"""What detection remembers of a job attempt between snapshots: immutable plain data.

It is not stored: after a restart of the server the nodes' own ages carry a stall on, and the limits
that were last stored with the job's verdict hold until its pace is known again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hangwatch_server.model import Evidence, Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One look at a rank while its job stalls: what must stand still if the rank is frozen."""

    at_s: float
    io_bytes: int | None
    main_cpu_s: float
    cpu_s: float = 0.0  # of all threads
    is_stopped: bool = False  # by a signal or a tracer, and not by a capture of ours
    moving_children: frozenset[str] = frozenset()  # roles of those that moved then
    capture: str = ""  # newest capture of this stall, "" while there is none
    captured_s: float = 0.0  # when it was taken, on the clock of the snapshots


@dataclass(frozen=True, slots=True)
class Still:
    """Since when the kernel has not run a rank's main thread, as far as its CPU time tells."""

    main_cpu_s: float
    since_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """One stall since its last progress."""

    origin_s: float  # the moment of the last progress, on the clock of the snapshots
    phase: str = ""  # in which it was seen last; its gap is learned there
    is_hung: bool = False
    was_frozen: bool = False  # a culprit was seen frozen for longer than a suspicion takes
    last: tuple[int, ...] = ()  # who was waited for when it was seen last
    group: str = ""  # name of the group that waited
    wait_s: float = 0.0  # for how long the others had waited then
    traces: Mapping[int, tuple[Trace, ...]] = field(default_factory=dict)
    still: Mapping[int, Still] = field(default_factory=dict)
    wished_s: tuple[float, ...] = ()  # when captures of the culprits were asked for
    wished_for: tuple[int, ...] = ()  # the culprits of the newest wish
    waiting_wishes: int = 0
    has_asked_recorder: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """One wait that ended: who came last, and how long the others had waited."""

    ranks: tuple[int, ...]
    group: str
    wait_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How often samples of ranks without counters look stuck; see `sampling`."""

    keys: Mapping[int, str] = field(default_factory=dict)  # rank -> its stack in the last sample
    newest_s: float | None = None
    outcomes: tuple[bool, ...] = ()  # of samples, newest last: did it look stuck?


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How an earlier attempt of the job ended: what a restart must not hide."""

    attempt: int
    was_hung: bool
    place: str  # kind, group, call and culprits, "" where nobody was held up
    where: str  # the same for people
    calls: int | None = None  # most calls of any rank, None where none was seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Start with `Memory()` for each attempt of a job, or `restarts.next_attempt()`."""

    stall: Stall | None = None
    seen_s: float = 0.0  # of the newest snapshot
    awake_s: float = 0.0  # looking without a break since
    has_looked_away: bool = False  # a break came before: this process stood still for seconds
    is_deaf: bool = False  # nobody was heard at the last look: the gap that ends teaches nothing
    # The job had run before the first look: its pace is not known, and not that of a start-up.
    is_midway: bool = False
    inherited: Limits | None = None  # of the server before this one
    tally: int = 0  # P2P calls and steps so far: they move without any group's counter
    tally_s: float | None = None  # when it last moved
    calls: int = 0  # most calls of any rank so far
    gaps: Mapping[str, tuple[float, ...]] = field(default_factory=dict)  # phase -> newest last
    pace: Mapping[str, float] = field(default_factory=dict)  # of `gaps`, so as not to sort twice
    recovered: tuple[float, ...] = ()  # stalls with a frozen culprit that ended by themselves
    arrivals: tuple[Arrival, ...] = ()
    stragglers: tuple[Evidence, ...] = ()  # of `arrivals`, so as not to count at every look
    sampling: Sampling = field(default_factory=Sampling)
    attempts: tuple[Ended, ...] = ()  # earlier ones, newest last
    hard_key: str = ""
    hard_since_s: float = 0.0
    has_progressed: bool = False
    over_since_s: float | None = None  # every process of the job is gone since


def ask_anew(memory: Memory) -> Memory:
    """Forget which captures of this stall were wished for: nobody could take them."""
    if memory.stall is None:
        return memory
    stall = replace(
        memory.stall, wished_s=(), wished_for=(), waiting_wishes=0, has_asked_recorder=False
    )
    return replace(memory, stall=stall)


def confirm(memory: Memory) -> Memory:
    """The stall at hand was confirmed as a hang by another server."""
    if memory.stall is None:
        return memory
    return replace(memory, stall=replace(memory.stall, is_hung=True))
