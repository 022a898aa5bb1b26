"""Everything known of one rank: its process, GPU, groups and last calls. Plain data."""

from __future__ import annotations

from dataclasses import dataclass

from hangwatch_server.model.rows import RankRow
from hangwatch_server.model.words import Activity


@dataclass(frozen=True, slots=True, kw_only=True)
class RankChild:
    """A descendant of the rank's process."""

    pid: int
    name: str
    role: str  # "loader", "compile", "checkpoint", "helper", "other"
    state: str
    wchan: str
    cpu_share: float | None
    parent: int  # pid; 0 unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class RankProcess:
    """What /proc says of the rank's process."""

    state: str  # R S D T t Z X, or "gone"
    wchan: str
    cpu_s: float
    main_cpu_share: float | None  # of one core, over the last few seconds
    main_still_s: float | None  # for how long the main thread has not run at all
    main_delay_share: float | None  # of the last seconds, ready to run without a core
    io_bytes: int | None
    threads: int
    exit_code: int | None
    exit_signal: int | None
    exit_reason: str
    is_unresponsive: bool
    is_gil_held: bool
    children: tuple[RankChild, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankGpu:
    """The GPU that the process uses, as NVML says; None where the driver does not say it."""

    index: int
    name: str
    uuid: str
    utilisation: float | None  # percent
    power_w: float | None
    power_limit_w: float | None
    memory_used_bytes: int | None
    memory_total_bytes: int | None
    temperature_c: float | None
    ecc_errors: int | None
    xid: tuple[int, ...]  # of the last 15 minutes, oldest first
    throttle: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankGroup:
    """A process group of the rank, and where the rank stands in it."""

    gid: str
    name: str
    description: str
    backend: str
    size: int
    seq: int | None  # newest collective that the rank has entered
    at: int | None  # newest that any member has entered
    behind: int | None  # at - seq; None where one of them is unknown
    op: str  # that the rank is in, "" for none
    stall_s: float  # for how long the rank's counter has not moved


@dataclass(frozen=True, slots=True, kw_only=True)
class RankCall:
    """A collective or point-to-point call that the rank made."""

    gid: str
    group: str  # its name
    op: str
    seq: int | None
    sizes: str  # "[4, 1024] float32", "" where unknown
    is_finished: bool
    peer: int | None  # global rank
    root: int | None  # global rank
    site: str  # the user's line, where call sites are noted
    age_s: float | None  # since it was entered, where known


@dataclass(frozen=True, slots=True, kw_only=True)
class RankWait:
    """A rendezvous, init_process_group or new_group call that has not returned."""

    what: str
    age_s: float
    expected: int  # world size it waits for, 0 unknown
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RankStack:
    """What the newest look at the rank's main thread showed."""

    age_s: float
    where: str  # innermost frame of the user's own code
    leaf: str  # innermost frame of all
    activity: Activity
    detail: str
    still_captures: int  # newest captures in a row with this stack
    still_s: float
    capture: str  # "" when it is stored nowhere


@dataclass(frozen=True, slots=True, kw_only=True)
class RankDetail:
    """One rank as `GET /jobs/{id}/ranks/{rank}` and its page show it."""

    job: str
    attempt: int
    world_size: int
    row: RankRow
    script: str
    inner_pid: int | None  # in its own pid namespace, where that is another
    phase_s: float
    phase_limit_s: float | None
    beat_age_s: float | None  # since the probe last wrote; None without probe
    is_rank_certain: bool
    process: RankProcess | None  # None: never reported
    gpu: RankGpu | None
    stack: RankStack | None
    groups: tuple[RankGroup, ...]
    calls: tuple[RankCall, ...]  # newest first
    waits: tuple[RankWait, ...]
