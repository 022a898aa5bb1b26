"""What a job looked like when its incident was opened, confirmed or changed: kept as evidence.

The board forgets within seconds, so what the page of an incident shows of groups, processes, GPUs
and last calls is stored at these moments. Bounded: only what the hang turns on.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from hangwatch_agent import wire
from hangwatch_server.model.rank_detail import RankGpu, RankProcess
from hangwatch_server.model.rows import GroupRow
from hangwatch_server.model.words import Link


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneCall:
    """One recorded collective as the ranks of a lane made it."""

    seq: int
    op: str
    shape: str  # "[1024] float"; "" where nothing is recorded of it
    is_finished: bool
    site: str = ""  # the line that made it, where call sites are noted


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """Ranks of one group whose newest recorded calls are the same."""

    gid: str
    group: str  # its name
    ranks: str
    calls: tuple[LaneCall, ...]  # oldest first; () when no record of these ranks is at hand
    entered: int | None  # number of the newest call that they are known to have entered


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCall:
    """A send or receive that a rank has entered and not finished."""

    rank: int
    is_send: bool
    number: int | None  # of its kind between these two; None where it is not counted
    tag: int | None
    waits_s: float
    is_blocking: bool
    site: str  # the line that made it, where call sites are noted


@dataclass(frozen=True, slots=True, kw_only=True)
class PairSide:
    """How many sends to the other, or receives from it, one rank has posted and finished."""

    posted: int
    finished: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """What one rank sends to another in a group, and the receives that should meet it."""

    group: str  # its name
    sender: int | None  # None: receives from any rank
    receiver: int
    sends: PairSide | None  # None: the sender is not heard
    receives: PairSide | None
    calls: tuple[OpenCall, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankFacts:
    """What the agent said of one rank's process and GPU."""

    rank: int
    node: str
    link: Link
    age_s: float  # since it was said
    depth: wire.Depth
    pid: int | None
    step: int | None
    phase: str
    process: RankProcess | None  # None: nothing was ever heard of it
    gpu: RankGpu | None  # None: no GPU is known to be its own
    lacks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSigns:
    """What speaks of a node's hardware, system or agent."""

    node: str
    ranks: str
    signs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    at: datetime
    why: str  # "opened", "confirmed", "changed"
    groups: tuple[GroupRow, ...]  # those that somebody waits in or is behind in, worst first
    groups_total: int
    ranks: tuple[RankFacts, ...]  # the culprits, and one of each class that waits
    lanes: tuple[Lane, ...]
    nodes: tuple[NodeSigns, ...]  # those with signs, the most telling first
    nodes_total: int
    pairs: tuple[Pair, ...] = ()  # sends and receives of the ranks that the hang turns on
