"""Entries that a connection has carried do not travel again."""

from __future__ import annotations

import msgspec

from hangwatch_agent import wire
from hangwatch_agent.carried import Carried

ENTRY = wire.Entry(seq=5, op="all_reduce", is_retired=False)
GROUP = wire.GroupBeat(gid="g", counter=5, stall_s=2.0, entries=(ENTRY,), are_entries_current=True)


def _rank(*groups: wire.GroupBeat, pid: int = 1) -> tuple[wire.RankBeat, ...]:
    process = wire.ProcessFacts(state="S")
    beat = wire.RankBeat(
        launch="l",
        rank=0,
        local_rank=0,
        world_size=1,
        pid=pid,
        start_ticks=1,
        process=process,
        groups=groups,
    )
    return (beat,)


def _sent(carried: Carried, beats: tuple[wire.RankBeat, ...]) -> wire.GroupBeat:
    less = carried.less(beats)
    carried.note(less)
    return less[0].groups[0]


def test_the_same_entries_travel_once() -> None:
    carried = Carried()

    first = _sent(carried, _rank(GROUP))
    second = _sent(carried, _rank(msgspec.structs.replace(GROUP, stall_s=3.0)))
    third = _sent(carried, _rank(msgspec.structs.replace(GROUP, stall_s=4.0)))

    assert first == GROUP
    assert (second.entries, second.are_entries_kept, second.stall_s) == ((), True, 3.0)
    assert third.are_entries_kept


def test_other_entries_of_the_group_travel() -> None:
    carried = Carried()
    _sent(carried, _rank(GROUP))
    moved = msgspec.structs.replace(GROUP, entries=(msgspec.structs.replace(ENTRY, seq=6),))

    assert _sent(carried, _rank(moved)) == moved


def test_what_the_beat_before_did_not_hold_travels_again() -> None:
    carried = Carried()
    _sent(carried, _rank(GROUP))
    _sent(carried, _rank(msgspec.structs.replace(GROUP, entries=())))

    assert _sent(carried, _rank(GROUP)) == GROUP


def test_another_process_and_another_connection_begin_anew() -> None:
    carried = Carried()
    _sent(carried, _rank(GROUP))

    assert _sent(carried, _rank(GROUP, pid=2)) == GROUP
    carried.clear()
    assert _sent(carried, _rank(GROUP, pid=2)) == GROUP


def test_what_was_cut_to_fit_is_sent_again_and_never_taken_for_known() -> None:
    carried = Carried()
    cut = _rank(msgspec.structs.replace(GROUP, entries=()))
    carried.less(_rank(GROUP))
    carried.note(cut)

    assert _sent(carried, _rank(GROUP)) == GROUP
