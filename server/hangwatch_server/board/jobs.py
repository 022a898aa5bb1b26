"""One job on the board: its ranks' slots, its groups and its count of attempts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from sys import intern

from hangwatch_agent import wire
from hangwatch_server import ranges
from hangwatch_server.board import slots
from hangwatch_server.board.base import ProcessId
from hangwatch_server.board.ras import RasBook
from hangwatch_server.board.slots import Slot
from hangwatch_server.model import GroupView

MAX_GROUPS = 262_144
# Members of all groups of a job together: a few groups of the largest world, and for each rank that
# was seen far more than any mesh has. Few characters of range text can name very many.
MAX_MEMBERS = 4 * wire.MAX_WORLD_SIZE
MAX_MEMBERS_PER_RANK = 4096
MAX_RETIRED = 100_000
# What a job says of its size is believed so far that its unseen ranks are looked at one by one: as
# many as these beside MOST_PER_SEEN for each that was seen. One process may say any number.
MOST_UNSEEN = 512
MOST_PER_SEEN = 4
# A living process with a lower number than the attempt is one that is about to be replaced, or one
# whose earlier processes were never seen: after this time it is taken for the latter.
ADOPT_S = 5.0


class BoardJob:
    """Mutable state of one job; the board alone calls it."""

    def __init__(self, id: str, launch: wire.Launch, now_s: float) -> None:
        self.id = id
        self.launch = launch
        self.slots: dict[int, Slot] = {}
        self.by_node: dict[str, set[int]] = {}
        self.groups: dict[str, GroupView] = {}
        self.base_attempt = 1
        self.base_processes: dict[int, ProcessId] = {}
        self.attempt = 1
        self.attempt_since_s = now_s
        self.created_s = now_s
        self.heard_s = now_s
        self.calls = 0
        self.moved_s: float | None = None
        self.processes_version = 0
        self.ras = RasBook()
        self._retired: set[ProcessId] = set()
        self._members = 0

    def take(
        self,
        node: str,
        beat: wire.RankBeat,
        restart: int,
        is_live: Callable[[str], bool],
        now_s: float,
    ) -> None:
        """Put a rank's beat where it belongs: same process, newer process, or an outdated one."""
        slot = self.slots.get(beat.rank)
        process = (node, beat.pid, beat.start_ticks)
        if slot is not None and slot.is_of(node, beat):
            slot.restart = max(slot.restart, restart)
            slot.number = max(slot.number, restart + 1)
            slot.refresh(beat, now_s)
        elif process in self._retired:
            return
        elif slot is None or slots.replaces(slot, node, beat, is_live(slot.node), restart):
            slot = self._seat(slot, node, beat, restart, now_s)
        elif node == slot.node or restart < slot.restart:
            self._retire(process)
            return
        else:
            return
        self._count(slot, now_s)
        self._set_attempt(slot.number, now_s)

    def miss(self, node: str, listed: set[int], now_s: float) -> None:
        """Note which of a node's ranks its newest heartbeat no longer lists."""
        for rank in self.by_node.get(node, ()):
            if rank not in listed:
                self.slots[rank].miss(now_s)

    def add_group(self, info: wire.GroupInfo) -> None:
        """Learn a group; a known gid is the same group by construction, so it is not read again."""
        if info.gid in self.groups or len(self.groups) >= MAX_GROUPS:
            return
        members = ranges.size(info.ranks)
        if self._members + members > MAX_MEMBERS + MAX_MEMBERS_PER_RANK * len(self.slots):
            return
        self._members += members
        gid = intern(info.gid)  # as places have it: they are looked up by it in every look
        self.groups[gid] = GroupView(
            gid=gid,
            name=info.name,
            description=info.description,
            backend=info.backend,
            ranks=ranges.parse(info.ranks),
            epoch=info.epoch,
            timeout_s=info.timeout_s,
        )

    def set_base(self, attempt: int, processes: Mapping[int, ProcessId], now_s: float) -> None:
        """Count attempts on from a stored one; slots that are there already are renumbered."""
        self.base_attempt = max(1, attempt)
        self.base_processes = dict(processes)
        self.attempt = self.base_attempt
        for rank, slot in self.slots.items():
            renumbered = slot.number + self.base_attempt - 1
            if slot.number == 1 and self._is_new(rank, slot.process):
                renumbered += 1
            slot.number = max(renumbered, slot.restart + 1)
            self._set_attempt(slot.number, now_s)

    def align(self, attempt: int, processes: Mapping[int, ProcessId], now_s: float) -> None:
        """Take over a higher count of attempts, whose processes are those given."""
        if attempt <= self.attempt:
            return
        self.base_attempt, self.base_processes = attempt, dict(processes)
        for rank, slot in self.slots.items():
            if not self._is_new(rank, slot.process) and rank in self.base_processes:
                slot.number = max(slot.number, attempt)
        self._set_attempt(attempt, now_s)

    def world_size(self) -> int:
        """From torch where a rank of this attempt knows it, else the best guess, never 0."""
        present = [slot.beat for slot in self.slots.values() if slot.number == self.attempt]
        certain = [beat.world_size for beat in present if beat.is_rank_certain]
        guesses = certain or [beat.world_size for beat in present] or [1]
        highest = max((beat.rank for beat in present), default=0) + 1
        return max(max(guesses), highest, 1)

    def listed(self, size: int) -> Iterable[int]:
        """The ranks of a world of this size to look at, ascending: all that were seen, and of the
        others as many as their number makes likely."""
        count = max(len(self.slots), len(self.base_processes))
        most = MOST_PER_SEEN * count + MOST_UNSEEN
        if size <= most:
            return range(size)
        seen = self.slots.keys() | self.base_processes.keys()
        unseen = itertools.islice((rank for rank in range(size) if rank not in seen), most)
        return sorted({*unseen, *(rank for rank in seen if rank < size)})

    def is_present(self, slot: Slot, now_s: float) -> bool:
        """Whether a slot belongs to the present attempt."""
        if slot.number >= self.attempt:
            return True
        is_known = not slot.is_gone and not slot.is_unlisted
        return is_known and now_s - self.attempt_since_s >= ADOPT_S

    def _seat(
        self, old: Slot | None, node: str, beat: wire.RankBeat, restart: int, now_s: float
    ) -> Slot:
        if old is not None:
            self._retire(old.process)
            self.by_node[old.node].discard(beat.rank)
            number = old.number + 1
        else:
            process = (node, beat.pid, beat.start_ticks)
            number = self.base_attempt + int(self._is_new(beat.rank, process))
        slot = Slot(node, beat, now_s, max(number, restart + 1), restart, now_s)
        slot.calls = slots.calls_of(beat)  # made before anybody looked
        self.slots[beat.rank] = slot
        self.by_node.setdefault(node, set()).add(beat.rank)
        self.processes_version += 1
        return slot

    def _is_new(self, rank: int, process: ProcessId) -> bool:
        stored = self.base_processes.get(rank)
        return stored is not None and tuple(stored) != process

    def _retire(self, process: ProcessId) -> None:
        if len(self._retired) < MAX_RETIRED:
            self._retired.add(process)

    def _count(self, slot: Slot, now_s: float) -> None:
        calls = slots.calls_of(slot.beat)
        ago_s = slots.moved_ago_s(slot.beat)
        self.calls += max(0, calls - slot.calls)  # a group that went takes its counter along
        slot.calls = calls
        if ago_s is not None:
            moved_s = now_s - ago_s
            self.moved_s = moved_s if self.moved_s is None else max(self.moved_s, moved_s)
        self.heard_s = now_s

    def _set_attempt(self, number: int, now_s: float) -> None:
        if number > self.attempt:
            self.attempt = number
            self.attempt_since_s = now_s
            self.ras.forget()
