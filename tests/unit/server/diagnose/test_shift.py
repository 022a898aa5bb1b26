"""Calls left out or made once too often, some calls before the hang."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from tests.unit.server.diagnose import builders as make

from hangwatch_agent import wire
from hangwatch_server.diagnose import diagnose
from hangwatch_server.diagnose.calls import record
from hangwatch_server.model import Kind, RankView, Shift

STEP, METRIC = "train.py:12 in step", "skipped_metric.py:19 in step"


def beat(
    calls: Sequence[str], *, waits: bool, has_sites: bool = True, gid: str = "world"
) -> wire.GroupBeat:
    """A rank that called all_reduce from these places; with `waits` the last is not finished."""
    entries = tuple(
        msgspec.structs.replace(
            make.entry(seq, retired=not (waits and seq == len(calls))),
            site=site if has_sites else "",
        )
        for seq, site in enumerate(calls, start=1)
    )
    return wire.GroupBeat(
        gid=gid,
        counter=len(calls),
        stall_s=12.0,
        entries=entries,
        entries_age_s=1.0,
        are_entries_current=True,
    )


def job(calls: dict[int, tuple[list[str], bool]], **options: bool) -> list[RankView]:
    return [
        make.rank(rank, beat(mine, waits=waits, **options)) for rank, (mine, waits) in calls.items()
    ]


def without(calls: list[str], place: int) -> list[str]:
    return calls[:place] + calls[place + 1 :]


def test_skipped_call_is_told_with_its_place_and_how_long_ago() -> None:
    whole = [STEP, METRIC] * 8
    ranks = {rank: (whole, True) for rank in (0, 2, 3)}
    views = job({**ranks, 1: (without(whole, 5), False)})

    found = diagnose(make.snapshot(views, [make.world(0, 1, 2, 3)]))[0]

    assert (found.kind, found.culprit_ranks) == (Kind.MISSING_RANKS, "1")
    assert found.shift == Shift(rank=1, calls=1, op="all_reduce", ago=10, where=METRIC)
    assert found.summary.endswith(f"Rank 1 skipped one all_reduce 10 calls ago, at {METRIC}.")


def test_of_two_ranks_the_one_that_breaks_its_rhythm_is_out_of_step() -> None:
    whole = [STEP, METRIC] * 8
    for odd, even in ((0, 1), (1, 0)):
        views = job({even: (whole, True), odd: (without(whole, 5), False)})

        found = diagnose(make.snapshot(views, [make.world(0, 1)]))[0]

        assert found.shift is not None
        assert (found.shift.rank, found.shift.calls) == (odd, 1)


def test_without_call_sites_like_calls_tell_counts_only() -> None:
    whole = [STEP, METRIC] * 8
    ranks = {rank: (whole, True) for rank in (0, 2, 3)}
    views = job({**ranks, 1: (without(whole, 5), False)}, has_sites=False)

    found = diagnose(make.snapshot(views, [make.world(0, 1, 2, 3)]))[0]

    assert (found.culprit_ranks, found.shift) == ("1", None)
    assert any("Rank 1 last entered #15." in item.text for item in found.evidence)


def test_skip_that_is_older_than_the_record_has_no_place() -> None:
    whole = [STEP, METRIC] * 100
    ranks = {rank: (whole, True) for rank in (0, 2, 3)}
    views = job({**ranks, 1: (without(whole, 5), False)})

    found = diagnose(make.snapshot(views, [make.world(0, 1, 2, 3)]))[0]

    assert (found.culprit_ranks, found.shift) == ("1", None)


def test_one_that_made_a_call_too_many_is_to_blame_and_not_those_who_never_come() -> None:
    whole = [STEP, METRIC] * 8
    extra = [*whole[:6], METRIC, *whole[6:]]
    ranks = {rank: (whole, False) for rank in (0, 1, 3)}
    views = job({**ranks, 2: (extra, True)})

    found = diagnose(make.snapshot(views, [make.world(0, 1, 2, 3)]))[0]

    assert (found.kind, found.culprit_ranks) == (Kind.MISMATCH, "2")
    assert found.shift is not None
    assert (found.shift.calls, found.shift.where) == (-1, METRIC)
    assert "Rank 2 made one extra all_reduce 11 calls ago" in found.summary


def test_siblings_say_which_of_two_is_out_of_step() -> None:
    whole = ["a", "b", "c", "a", "c", "b", "d", "e"]
    views = [
        make.rank(0, beat(whole, waits=True, gid="dp-0")),
        make.rank(1, beat(without(whole, 3), waits=False, gid="dp-0")),
        make.rank(2, beat(whole, waits=False, gid="dp-1")),
        make.rank(3, beat(whole, waits=False, gid="dp-1")),
    ]
    groups = [make.group("dp-0", (0, 1)), make.group("dp-1", (2, 3))]

    found = diagnose(make.snapshot(views, groups))[0]

    assert found.shift == Shift(rank=1, calls=1, op="all_reduce", ago=4, where="a")


def test_tail_and_entries_are_one_record() -> None:
    kinds = (make.entry(1, retired=True), make.entry(2, "broadcast", retired=True))
    group = wire.GroupBeat(
        gid="world",
        counter=6,
        stall_s=1.0,
        entries=(make.entry(5, retired=True), make.entry(6)),
        tail=wire.Tail(calls=((1, 0), (2, 1), (3, 0), (4, 1)), kinds=kinds),
    )

    found = record.whole(group)

    assert [entry.seq for entry in found] == [1, 2, 3, 4, 5, 6]
    assert [entry.op for entry in found][:4] == ["all_reduce", "broadcast"] * 2
