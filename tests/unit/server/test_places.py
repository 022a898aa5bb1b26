"""A rank's places, worked out anew or taken over from the heartbeat before."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hangwatch_agent import wire
from hangwatch_server import places


def entry(seq: int, **more: Any) -> wire.Entry:
    return wire.Entry(seq=seq, op="all_reduce", is_retired=more.pop("is_retired", False), **more)


DONE, FRONT = entry(1, is_retired=True), entry(2, input_sizes=((4,),), input_dtypes=("Float",))
GROUP = wire.GroupBeat(
    gid="g", counter=2, stall_s=3.0, seq=2, entries=(DONE, FRONT), are_entries_current=True
)


def beat(*groups: wire.GroupBeat, is_destroyed: bool = False) -> wire.RankBeat:
    return wire.RankBeat(
        launch="job",
        rank=7,
        local_rank=0,
        world_size=8,
        pid=1,
        start_ticks=1,
        process=wire.ProcessFacts(state="S"),
        groups=groups,
        is_destroyed=is_destroyed,
    )


def changed(**fields: Any) -> wire.GroupBeat:
    return msgspec.structs.replace(GROUP, **fields)


def test_front_is_what_is_entered_and_not_finished() -> None:
    (place,) = places.of(7, beat(GROUP))

    assert (place.rank, place.gid, place.entered, place.completed) == (7, "g", 2, 1)
    assert (place.front, place.waits_in, place.stall_s) == (FRONT, 2, 3.0)
    assert place.content == ("all_reduce", ((4,),), ("Float",))
    assert place.may_wait


def test_a_rank_that_finished_all_of_its_calls_waits_in_none() -> None:
    (place,) = places.of(7, beat(changed(seq=1, entries=(DONE,))))

    assert (place.entered, place.completed, place.front, place.may_wait) == (1, 1, None, False)


ODD = {
    "entries are old": changed(are_entries_current=False),
    "entries are out of order": changed(entries=(FRONT, DONE)),
    "a number comes twice": changed(entries=(FRONT, FRONT)),
    "a later call is finished": changed(entries=(FRONT, entry(3, is_retired=True))),
    "its front is not the newest": changed(seq=3),
    "its front is not started": changed(entries=(DONE, entry(2, is_started=False))),
    "its clock runs backwards": changed(stall_s=-0.5),
    "its number is below zero": changed(seq=-1),
    "its number is beyond all": changed(seq=places.MAX_SEQ + 1),
    "what it finished proves nothing": changed(
        entries=(wire.Entry(seq=1, op="all_to_all", is_retired=True), FRONT)
    ),
    "its count is ahead of its entries": changed(finished=2),
}


@pytest.mark.parametrize("group", ODD.values(), ids=ODD.keys())
def test_whatever_is_odd_has_no_place(group: wire.GroupBeat) -> None:
    (place,) = places.of(7, beat(group))

    assert (place.entered, place.front, place.group) == (None, None, group)


def test_a_rank_past_its_groups_has_none() -> None:
    before = places.of(7, beat(GROUP))

    assert places.of(7, beat(GROUP, is_destroyed=True), before) == ()


def test_ranks_that_make_the_same_call_share_its_content() -> None:
    other = msgspec.structs.replace(FRONT, input_sizes=((2 + 2,),), record_id=9)

    (one,), (two,) = (places.of(7, beat(changed(entries=(DONE, e)))) for e in (FRONT, other))

    assert one.content is two.content


def test_a_place_that_did_not_change_is_as_old_as_the_newest_heartbeat() -> None:
    before = places.of(7, beat(GROUP))

    (place,) = places.of(7, beat(changed(stall_s=9.0)), before)

    assert place == places.of(7, beat(changed(stall_s=9.0)))[0]
    assert place.content is before[0].content


_GROUPS = st.lists(
    st.builds(
        changed,
        gid=st.sampled_from(["g", "h"]),
        stall_s=st.sampled_from([-0.5, 0.0, 4.0]),
        seq=st.sampled_from([None, 1, 2, 3]),
        finished=st.sampled_from([None, 1, 2]),
        are_entries_current=st.booleans(),
        entries=st.sampled_from([(), (DONE,), (DONE, FRONT), (FRONT, DONE)]),
    ),
    max_size=3,
)


@given(_GROUPS, _GROUPS)
def test_places_are_the_same_whatever_was_before(
    earlier: list[wire.GroupBeat], later: list[wire.GroupBeat]
) -> None:
    before = places.of(7, beat(*earlier))

    assert places.of(7, beat(*later), before) == places.of(7, beat(*later))
