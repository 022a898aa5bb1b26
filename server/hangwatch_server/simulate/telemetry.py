"""What the agents report of a rank: the wire's own structs, made from where the rank truly is.

Two shapes. gloo: no start events, a raw counter that also counts sends and receives, completion
known from the recorder's entries alone, wrapped calls for P2P and roots. NCCL: the CPU runs ahead
of the GPU up to the next synchronisation, so a group can hold calls that are queued; completed and,
with timing enabled, started numbers are known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from hangwatch_agent import wire
from hangwatch_server.simulate.machine import Machine
from hangwatch_server.simulate.meshes import WORLD
from hangwatch_server.simulate.programs import (
    RECV,
    ROOT_RECEIVES,
    ROOT_SENDS,
    SEND,
    WAIT,
    Call,
    Program,
)

ROOTED = ROOT_SENDS | ROOT_RECEIVES


class Shape(StrEnum):
    GLOO = "gloo"
    NCCL = "nccl"  # without start events
    NCCL_TIMED = "nccl_timed"


@dataclass(frozen=True, slots=True)
class Ring:
    """How the recorder of one rank looks: what is kept of each group, and its numbering."""

    kept: int = 16  # newest entries per group
    first_record: int = 0  # record_id of the first call: other recorders started earlier or later
    is_current: bool = True  # False: the counters moved since the dump
    has_seq: bool = True  # False: no comparable number beside the entries


@dataclass(frozen=True, slots=True)
class Place:
    """A rank's place in its program: calls before `done` are over, before `entered` are made."""

    done: int
    entered: int
    pending: frozenset[tuple[str, int]]  # asynchronous collectives that are not finished
    is_started: bool = True  # False: its GPU has not come to the first unfinished call


def place_of(machine: Machine, rank: int, shape: Shape, *, is_queued: bool = False) -> Place:
    """Where the rank is now; `is_queued`: its GPU, not its CPU, is what stopped."""
    course = machine.courses[rank]
    pending = frozenset((key[0], key[1]) for key in course.pending)
    if shape is Shape.GLOO:
        return Place(course.place, course.place + course.is_inside, pending)
    program = machine.programs[rank]
    is_cpu_stopped = not is_queued and rank in machine.stops
    limit = machine.stops[rank] if is_cpu_stopped else len(program)
    ahead = _ahead(program, course.place, limit)
    return Place(course.place, ahead, pending, is_started=course.is_inside)


def passed(program: Program, done: int, pending: frozenset[tuple[str, int]], shape: Shape) -> Place:
    """A place that a rank was at before: between two calls, or running ahead of its GPU."""
    entered = done if shape is Shape.GLOO else _ahead(program, done, len(program))
    return Place(done, entered, pending)


def _ahead(program: Program, start: int, limit: int) -> int:
    """The CPU issues calls up to and with the next one whose result it reads: the world's."""
    place = start
    while place < limit:
        place += 1
        if program[place - 1].gid == WORLD:
            break
    return place


@dataclass(frozen=True, slots=True)
class _Record:
    """One call that a rank has made, by number on its group."""

    number: int
    call: Call
    index: int
    is_done: bool


def group_beats(
    program: Program,
    gids: Iterable[str],
    place: Place,
    shape: Shape,
    ring: Ring,
    *,
    stall_s: float,
    idle_s: float,
) -> tuple[wire.GroupBeat, ...]:
    """`stall_s`: how long groups with an unfinished call have stood; `idle_s`: the others."""
    records = _records(program, place)
    posted = Counter(call.gid for call in program[: place.entered] if not call.is_collective)
    beats = []
    for gid in gids:
        mine = records.get(gid, [])
        is_waiting = any(not record.is_done for record in mine)
        counter = len(mine) + (posted[gid] if shape is Shape.GLOO else 0)
        beats.append(
            _beat(gid, mine, counter, place, shape, ring, stall_s if is_waiting else idle_s)
        )
    return tuple(beats)


def _records(program: Program, place: Place) -> dict[str, list[_Record]]:
    found: dict[str, list[_Record]] = {}
    for index, call in enumerate(program[: place.entered]):
        if call.is_collective:
            mine = found.setdefault(call.gid, [])
            number = len(mine) + 1
            is_done = index < place.done and (call.gid, number) not in place.pending
            mine.append(_Record(number, call, index, is_done))
    return found


def _beat(
    gid: str,
    mine: list[_Record],
    counter: int,
    place: Place,
    shape: Shape,
    ring: Ring,
    stall_s: float,
) -> wire.GroupBeat:
    seen = mine if ring.is_current else [record for record in mine if record.is_done][:-1]
    kept = seen[-ring.kept :]
    entries = tuple(_entry_of(record, place, shape, ring) for record in kept)
    has_seq = ring.has_seq or shape is not Shape.GLOO
    finished = started = None
    if shape is not Shape.GLOO:
        finished = sum(record.is_done for record in mine)
        started = sum(_is_started(record, place) for record in mine)
    return wire.GroupBeat(
        gid=gid,
        counter=counter,
        stall_s=round(stall_s, 2),
        seq=len(mine) if has_seq else None,
        entries=entries,
        entries_age_s=1.0 if entries else None,
        are_entries_current=ring.is_current,
        finished=finished,
        started=started if shape is Shape.NCCL_TIMED else None,
    )


def _is_started(record: _Record, place: Place) -> bool:
    return record.is_done or (record.index == place.done and place.is_started)


def _entry_of(record: _Record, place: Place, shape: Shape, ring: Ring) -> wire.Entry:
    started = _is_started(record, place) if shape is Shape.NCCL_TIMED else None
    record_id = ring.first_record + record.index
    return _entry(record.number, record.call, record.is_done, started, record_id)


@lru_cache(maxsize=200_000)  # ranks that made the same calls share their entries
def _entry(
    number: int, call: Call, is_done: bool, is_started: bool | None, record_id: int
) -> wire.Entry:
    sizes = ((call.size,),)
    return wire.Entry(
        seq=number,
        op=call.op,
        is_retired=is_done,
        is_started=is_started,
        input_sizes=sizes,
        output_sizes=sizes,
        input_dtypes=(call.dtype,),
        output_dtypes=(call.dtype,),
        record_id=record_id,
        timeout_s=1800.0,
    )


def wrapped_calls(program: Program, place: Place, age_s: float) -> tuple[wire.Call, ...]:
    """The call that the rank is inside of, where the probe wraps it: P2P and rooted, on gloo."""
    if place.entered <= place.done:
        return ()
    call = program[place.done]
    if call.op == WAIT or (call.is_collective and call.op not in ROOTED):
        return ()
    seq = None if call.is_collective else _count(program[: place.entered], call)
    found = wire.Call(
        op=call.op, gid=call.gid, age_s=age_s, peer=call.peer, seq=seq, root=call.root
    )
    return (found,)


def _count(program: Program, call: Call) -> int:
    return sum((c.gid, c.op, c.peer) == (call.gid, call.op, call.peer) for c in program)


def p2p_counts(program: Program, place: Place) -> tuple[wire.P2PCount, ...]:
    posted: Counter[tuple[str, str, int]] = Counter()
    done: Counter[tuple[str, str, int]] = Counter()
    for index, call in enumerate(program[: place.entered]):
        if call.op in (SEND, RECV) and call.peer is not None:
            posted[(call.gid, call.op, call.peer)] += 1
            done[(call.gid, call.op, call.peer)] += index < place.done
    return tuple(
        wire.P2PCount(
            gid=gid, peer=peer, is_send=op == SEND, posted=number, done=done[(gid, op, peer)]
        )
        for (gid, op, peer), number in sorted(posted.items())
    )
