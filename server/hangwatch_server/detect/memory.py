"""What detection remembers of a job attempt between snapshots: immutable plain data.

It is not stored: after a restart of the server the nodes' own ages carry a stall on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One look at a rank while its job stalls: what must stand still if the rank is frozen."""

    at_s: float
    io_bytes: int | None
    main_cpu_s: float
    capture: str = ""  # newest capture of this stall, "" while there is none
    captured_s: float = 0.0  # when it was taken, on the clock of the snapshots


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """One stall since its last progress."""

    origin_s: float  # the moment of the last progress, on the clock of the snapshots
    phase: str = ""  # recognised while it lasts; its gap is learned there
    is_hung: bool = False
    traces: Mapping[int, tuple[Trace, ...]] = field(default_factory=dict)
    wished_s: tuple[float, ...] = ()  # when captures of the culprits were asked for
    wished_for: tuple[int, ...] = ()  # the culprits of the newest wish
    waiting_wishes: int = 0
    has_asked_recorder: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Start with `Memory()` for each attempt of a job."""

    stall: Stall | None = None
    seen_s: float = 0.0  # of the newest snapshot
    tally: int = 0  # P2P calls and steps so far: they move without any group's counter
    tally_s: float | None = None  # when it last moved
    gaps: Mapping[str, tuple[float, ...]] = field(default_factory=dict)  # phase -> newest last
    p99: Mapping[str, float] = field(default_factory=dict)  # of `gaps`, so as not to sort twice
    hard_key: str = ""
    hard_since_s: float = 0.0
    has_progressed: bool = False
    over_since_s: float | None = None  # every process of the job is gone since
