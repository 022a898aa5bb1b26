"""This process's live process groups, from torch.distributed's own tables, with their epochs.

torch's `pg_id` counts creations per process and differs between ranks; name, members and the n-th
creation of that pair are the same everywhere. Creations are counted where each ProcessGroup gets
its name, so that a group which lives for a moment between two beats is counted as well.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections import deque
from typing import Any

C10D = "torch.distributed.distributed_c10d"
MAX_SITES = 128  # twice what travels of a record


class Group:
    """One live group of this rank and what is known of its counters."""

    def __init__(self, name: str, ranks: tuple[int, ...], epoch: int, is_watched: bool) -> None:
        self.name = name
        self.recorded_as = name  # its name in the recorder
        self.gloo_side: Group | None = None  # of a group with NCCL for GPU and gloo for CPU tensors
        self.ranks = ranks
        self.epoch = epoch
        # Were the wrappers in place before its first call? Only then is `offset` complete.
        self.is_watched = is_watched
        self.description = ""
        self.backend = ""
        self.timeout_s: float | None = None
        self.raw = 0
        self.counter = 0
        self.moved_ns = 0
        self.seq: int | None = None
        self.offset = 0  # recorder's collective_seq_id minus gloo's raw counter
        self.burned = 0  # collective_seq_ids that monitored_barrier used up
        self.uncounted = 0  # calls that the raw counter misses (P2P on an accelerator)
        self.entering = 0  # wrapped calls inside their C++ method at this moment
        self.entry_seq = 0  # seq before the first of them
        self.is_seq_refuted = False
        self.finished: int | None = None
        self.started: int | None = None
        self.entries: list[dict[str, Any]] = []
        self.tail: Any = None  # older entries in short, see `tails`
        self.p2p: list[dict[str, Any]] = []  # NCCL: sends and receives of the last dump
        self.has_p2p = False  # NCCL: then the recorder's completed number may be one of P2P
        self.is_blind = False  # entries of this torch cannot be compared across ranks
        self.sites: deque[Any] = deque(maxlen=MAX_SITES)  # newest calls with their places
        self.roots: deque[tuple[int, int]] = deque(maxlen=MAX_SITES)  # (number, global rank)
        self.dumped_ns = 0
        self.dumped_counter = -1

    def global_rank(self, group_rank: int) -> int | None:
        return self.ranks[group_rank] if 0 <= group_rank < len(self.ranks) else None

    @property
    def is_gloo(self) -> bool:
        return backends_of(self.backend) == {"gloo"}

    @property
    def is_nccl(self) -> bool:
        return backends_of(self.backend) == {"nccl"} or self.gloo_side is not None


def backends_of(text: str) -> set[str]:
    """{"gloo"} of "gloo" or of "cpu:gloo,cuda:gloo"."""
    return {part.rpartition(":")[2] for part in text.split(",") if part}


class Table:
    """All groups this process has seen; entries of dead groups vanish with their ProcessGroup."""

    def __init__(self) -> None:
        # Weak keys: holding a ProcessGroup would move its destructor, which is user-visible.
        self._groups: weakref.WeakKeyDictionary[Any, Group] = weakref.WeakKeyDictionary()
        self._epochs: dict[tuple[str, tuple[int, ...]], int] = {}
        self._lock = threading.Lock()

    def created(self, group: Any, name: str, ranks: tuple[int, ...], is_watched: bool) -> Group:
        with self._lock:
            known = self._groups.get(group)
            if known is not None:
                return known
            key = (name, tuple(sorted(ranks)))
            epoch = self._epochs.get(key, 0) + 1
            self._epochs[key] = epoch
            made = Group(name, ranks, epoch, is_watched)
            self._groups[group] = made
            return made

    def of(self, group: Any) -> Group | None:
        known = self._groups.get(group)
        return known if known is not None else self._adopt(group)

    def live(self) -> list[tuple[Any, Group]]:
        """The groups that torch.distributed lists now, creation order."""
        world = _world()
        if world is None:
            return []
        pairs = []
        for group in list(world.pg_map):
            known = self.of(group)
            if known is not None:
                self._describe(world, group, known)
                pairs.extend(_sides(group, known))
        return pairs

    def _adopt(self, group: Any) -> Group | None:
        """A group made before the wrappers were in place (`import hangwatch.auto` came late)."""
        world = _world()
        ranks = None if world is None else world.pg_group_ranks.get(group)
        if world is None or not ranks:
            return None
        name = str(world.pg_names.get(group, ""))
        return self.created(group, name, _in_group_order(ranks), is_watched=False)

    def _describe(self, world: Any, group: Any, known: Group) -> None:
        if known.backend:
            return
        backend = str(world.pg_map[group][0])
        config = str(world.pg_backend_config.get(group, ""))
        kinds = backends_of(config)
        known.backend = next(iter(kinds)) if len(kinds) == 1 else (config or backend)
        known.timeout_s = _timeout_s(group)
        known.description = str(getattr(group, "group_desc", ""))[:200]


def _timeout_s(group: Any) -> float | None:
    """After which torch gives up on this group, by the options of its backend; 2 µs, asked once."""
    try:
        for device in group._device_types:
            return float(group._get_backend(device).options._timeout.total_seconds())
    except Exception:
        # torch's internals differ between versions and backends: a lack here is no news.
        return None
    return None


def begun() -> int | None:
    """How many groups this process has begun to create under a running number; None if unknown."""
    count = getattr(_world(), "group_count", None)
    return count if isinstance(count, int) else None


def _sides(process_group: Any, known: Group) -> list[tuple[Any, Group]]:
    """What is read of a group: one part for each backend, as each has a recorder and numbers.

    A group made without naming a backend has NCCL and gloo on a machine with GPUs.
    """
    if backends_of(known.backend) != {"gloo", "nccl"}:
        return [(process_group, known)]
    try:
        device = sys.modules["torch"].device
        sides = [process_group._get_backend(device(kind)) for kind in ("cuda", "cpu")]
    except (AttributeError, KeyError, RuntimeError):
        return [(process_group, known)]  # another torch: read as one, by its default backend
    if known.gloo_side is None:
        made = Group(f"{known.name}/gloo", known.ranks, known.epoch, is_watched=False)
        made.recorded_as, made.backend = known.name, "gloo"
        made.description = f"{known.description} (gloo)"
        known.gloo_side = made
    return [(sides[0], known), (sides[1], known.gloo_side)]


def _world() -> Any:
    """torch's private table of groups; `Any` because no type of it is public."""
    module = sys.modules.get(C10D)
    return None if module is None else getattr(module, "_world", None)


def _in_group_order(ranks: Any) -> tuple[int, ...]:
    return tuple(int(rank) for rank, _ in sorted(ranks.items(), key=lambda pair: pair[1]))


def ranks_text(ranks: tuple[int, ...]) -> str:
    """Group order as text; ascending runs are written short: (0, 1, 2, 7) -> "0-2,7".

    So are strides, (0, 8, 16) -> "0-16:8": of a job of 16,384 ranks a few data-parallel groups
    written out would fill the record.
    """
    parts: list[str] = []
    start = 0
    while start < len(ranks):
        end = start
        step = ranks[start + 1] - ranks[start] if start + 1 < len(ranks) else 0
        while step > 0 and end + 1 < len(ranks) and ranks[end + 1] - ranks[end] == step:
            end += 1
        if step > 1 and end - start < 2:
            end = start  # two ranks apart are shorter by themselves
        suffix = f":{step}" if step > 1 else ""
        low, high = ranks[start], ranks[end]
        parts.append(str(low) if start == end else f"{low}-{high}{suffix}")
        start = end + 1
    return ",".join(parts)
