"""Runs the programs of a job until nobody can move: a small event simulation without any clock.

It knows how calls complete, and nothing of diagnosis. A collective that needs everybody completes
when all members are in it and made the same call; receivers of a broadcast or scatter wait for its
root alone and its root for nobody; contributors to a reduce or gather leave at once; a send waits
for its receive and the reverse.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hangwatch_server.simulate.meshes import Mesh
from hangwatch_server.simulate.programs import ROOT_RECEIVES, ROOT_SENDS, SEND, WAIT, Call, Program

Key = tuple[str, int] | tuple[str, int, int, int]  # (gid, seq) or (gid, from, to, number)


@dataclass(slots=True)
class Slot:
    """One collective, or one pair of send and receive, and who came to it with which call."""

    needed: tuple[int, ...]
    calls: dict[int, Call] = field(default_factory=dict)
    done: set[int] = field(default_factory=set)
    is_mixed: bool = False  # its members made different calls: it never finishes

    def enter(self, rank: int, call: Call) -> None:
        first = next(iter(self.calls.values()), call)
        self.is_mixed = self.is_mixed or _signature(first) != _signature(call)
        self.calls[rank] = call

    def inside(self) -> list[int]:
        return [member for member in self.calls if member not in self.done]


@dataclass(slots=True)
class Course:
    """Where a rank is: `place` in its program, inside that call or before it."""

    place: int = 0
    is_inside: bool = False
    pending: set[Key] = field(default_factory=set)  # asynchronous calls that are not finished
    counts: Counter[tuple[str, ...]] = field(default_factory=Counter)


class Machine:
    """`stops`: the call that a rank never comes to; `broken`: collectives that never finish."""

    def __init__(
        self,
        mesh: Mesh,
        programs: list[Program],
        *,
        stops: Mapping[int, int] | None = None,
        broken: Iterable[Key] = (),
    ) -> None:
        self.mesh = mesh
        self.programs = programs
        self.stops = dict(stops or {})
        self.broken = frozenset(broken)
        self.courses = [Course() for _ in programs]
        self.slots: dict[Key, Slot] = {}
        self._ready: deque[int] = deque()

    def run(self, order: Iterable[int] | None = None, most: int | None = None) -> None:
        """Until nobody can move, or for `most` turns; a turn takes one rank as far as it goes."""
        self._ready = deque(order if order is not None else range(len(self.programs)))
        turns = 0
        while self._ready and (most is None or turns < most):
            turns += 1
            self._advance(self._ready.popleft())

    def is_over(self, rank: int) -> bool:
        return self.courses[rank].place >= len(self.programs[rank])

    def is_stopped(self, rank: int) -> bool:
        return self.courses[rank].place == self.stops.get(rank, -1)

    def waits_for(self, rank: int) -> frozenset[int]:
        """The ranks that this one waits for: the truth that no telemetry shows as such."""
        course = self.courses[rank]
        if not course.is_inside:
            return frozenset()
        call = self.programs[rank][course.place]
        if call.op == WAIT:
            keys = [key for key in course.pending if key[0] == call.gid]
        else:
            keys = [self._key(rank, call, number=0)]
        return frozenset(missing for key in keys for missing in self._missing(key, rank))

    def _advance(self, rank: int) -> None:
        course, program = self.courses[rank], self.programs[rank]
        limit = min(self.stops.get(rank, len(program)), len(program))
        while course.place < limit and not course.is_inside:
            call = program[course.place]
            if call.op == WAIT:
                course.is_inside = any(key[0] == call.gid for key in course.pending)
                course.place += not course.is_inside
                continue
            key = self._key(rank, call, number=1)
            course.is_inside = not call.is_async
            if call.is_async:
                course.pending.add(key)
                course.place += 1
            self._arrive(rank, call, key)

    def _key(self, rank: int, call: Call, *, number: int) -> Key:
        """The slot of the rank's next call (number 1) or of the one that it is in (number 0)."""
        counts = self.courses[rank].counts
        if call.is_collective:
            counts[(call.gid,)] += number
            return (call.gid, counts[(call.gid,)])
        assert call.peer is not None  # sends and receives have one
        pair = (rank, call.peer) if call.op == SEND else (call.peer, rank)
        place = (call.gid, call.op, str(call.peer))
        counts[place] += number
        return (call.gid, *pair, counts[place])

    def _arrive(self, rank: int, call: Call, key: Key) -> None:
        slot = self.slots.get(key)
        if slot is None:
            needed = self.mesh.members(call.gid) if len(key) == 2 else (key[1], key[2])
            slot = self.slots[key] = Slot(needed)
        slot.enter(rank, call)
        if key not in self.broken:
            for member in self._released(slot, rank, call):
                self._finish(member, key, slot)

    def _released(self, slot: Slot, rank: int, call: Call) -> list[int]:
        """Who may leave now that `rank` has come."""
        if call.op in ROOT_SENDS and call.root is not None:
            return _served(slot, rank, call)
        if slot.is_mixed:
            return []
        if len(slot.calls) == len(slot.needed):
            return slot.inside()
        is_contributor = call.op in ROOT_RECEIVES and rank != call.root
        return [rank] if is_contributor else []

    def _finish(self, rank: int, key: Key, slot: Slot) -> None:
        course = self.courses[rank]
        slot.done.add(rank)
        if key in course.pending:
            course.pending.discard(key)
            head = self.programs[rank][course.place : course.place + 1]
            is_waiting = course.is_inside and bool(head) and head[0].op == WAIT
            if is_waiting and not any(key[0] == head[0].gid for key in course.pending):
                course.is_inside = False
                course.place += 1
                self._ready.append(rank)
            return
        course.is_inside = False
        course.place += 1
        self._ready.append(rank)

    def _missing(self, key: Key, rank: int) -> list[int]:
        slot = self.slots[key]
        call = slot.calls[rank]
        needed = (call.root,) if call.op in ROOT_SENDS and call.root is not None else slot.needed
        return [member for member in needed if member not in slot.calls and member != rank]


def _served(slot: Slot, rank: int, call: Call) -> list[int]:
    """A root leaves at once, its receivers with it; who names another root stays for ever."""
    if rank == call.root:
        return [r for r in slot.inside() if r == rank or slot.calls[r] == call]
    is_served = call.root is not None and slot.calls.get(call.root) == call
    return [rank] if is_served else []


def _signature(call: Call) -> tuple[object, ...]:
    if not call.is_collective:
        return ()
    return (call.op, call.size, call.dtype, call.root)
