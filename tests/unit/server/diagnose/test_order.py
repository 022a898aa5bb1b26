"""Who of a cycle is out of step: a rank with other counts than the ranks that it waits with."""

from __future__ import annotations

from tests.unit.server.diagnose import builders as make

from hangwatch_agent import wire
from hangwatch_server.diagnose import DEFAULT, diagnose, survey
from hangwatch_server.diagnose.calls import order
from hangwatch_server.model import Activity, Finding, Kind, RankView


def view(rank: int, **groups: tuple[int, bool]) -> RankView:
    """`tp=(5, True)`: entered five calls of its tp group and waits in the last."""
    beats: list[wire.GroupBeat] = []
    for gid, (entered, waits) in groups.items():
        done = entered - 1 if waits else entered
        beats.append(make.at(gid.replace("_", "-"), done, entered if waits else None))
    stack = make.stack(Activity.COLLECTIVE, op="all_reduce")
    return make.rank(rank, *beats, stack=stack)


def first(*views: RankView, tensor: int = 4) -> Finding:
    size = len(views)
    rows = [range(low, low + tensor) for low in range(0, size, tensor)]
    groups = [make.group(f"tp-{row[0]}", row, description="tp") for row in rows]
    return diagnose(make.snapshot(views, [make.world(*range(size)), *groups]))[0]


def test_rank_that_left_a_call_out_is_named_alone_of_the_whole_cycle() -> None:
    """Rank 5 skipped tp #6 and waits with rows that came to the world's call in order."""
    ahead = [view(rank, tp_0=(6, False), world=(3, True)) for rank in range(4)]
    mates = [view(rank, tp_4=(6, True), world=(2, False)) for rank in (4, 6, 7)]
    odd = view(5, tp_4=(5, False), world=(3, True))

    found = first(*ahead, *mates, odd)

    assert (found.kind, found.culprit_ranks) == (Kind.DEADLOCK, "5")
    assert any(
        "Rank 5 has made one call fewer on its tp group" in item.text for item in found.evidence
    )


def test_way_that_no_other_rank_went_is_astray() -> None:
    """Rank 1 is ahead of the others in the world and behind them in its row."""
    views = [view(rank, tp_0=(6, True), world=(2, False)) for rank in (0, 2, 3)]
    views += [view(rank, tp_4=(6, False), world=(2, False)) for rank in (4, 5)]
    views += [view(rank, tp_4=(5, True), world=(2, False)) for rank in (6, 7)]
    views.append(view(1, tp_0=(5, False), world=(3, True)))
    groups = [make.group(f"tp-{low}", range(low, low + 4), description="tp") for low in (0, 4)]
    looked = survey.survey(make.snapshot(views, [make.world(*range(8)), *groups]), DEFAULT)

    assert order._astray(looked, range(8)) == {1}


def test_two_ranks_in_two_orders_are_both_named() -> None:
    found = first(
        view(0, tp_0=(6, True), world=(2, False)),
        view(1, tp_0=(5, False), world=(3, True)),
        tensor=2,
    )

    assert (found.kind, found.culprit_ranks) == (Kind.DEADLOCK, "0-1")
