"""Ranks that are not heard: they hide no proof, and are never accused above what is known."""

from __future__ import annotations

from tests.unit.server.diagnose import builders as make

from hangwatch_server.diagnose import diagnose, path
from hangwatch_server.model import Activity, Condition, Kind, Link, RankView

INSIDE = make.stack(Activity.COLLECTIVE, op="all_reduce")


def lost(rank: int, *groups: object, node: str = "node-b", age_s: float = 30.0) -> RankView:
    return make.rank(rank, *groups, node=node, link=Link.LOST, age_s=age_s)  # type: ignore[arg-type]


def test_silent_member_does_not_hide_a_cycle() -> None:
    views = [
        make.rank(0, make.at("world", 5, 6), make.at("tp", 0), stack=INSIDE),
        make.rank(1, make.at("world", 5), make.at("tp", 0, 1), stack=INSIDE),
        lost(2, make.at("world", 4)),
    ]

    found = diagnose(make.snapshot(views, [make.world(0, 1, 2), make.group("tp", (0, 1))]))

    assert [(item.kind, item.culprit_ranks) for item in found] == [(Kind.DEADLOCK, "0-1")]
    assert found[0].is_hard
    assert any("silent" in item.text for item in found[0].evidence)


def test_wait_for_a_silent_rank_is_explained_by_the_culprit_that_it_may_wait_for_itself() -> None:
    """Rank 2 is not heard; its peers in dp wait for it, and it may wait in tp for rank 3."""
    groups = [make.group("dp", (0, 1, 2)), make.group("tp", (2, 3, 4))]
    views = [
        make.rank(0, make.at("dp", 5, 6)),
        make.rank(1, make.at("dp", 5, 6)),
        lost(2, make.at("dp", 4), make.at("tp", 7)),
        make.rank(3, make.at("tp", 8), stack=make.stack(Activity.DATALOADER)),
        make.rank(4, make.at("tp", 8, 9)),
    ]

    found = diagnose(make.snapshot(views, groups))
    steps = path(make.snapshot(views, groups), 0)

    assert [item.culprit_ranks for item in found] == ["3"]
    assert found[0].waiting == "0-1,4"
    assert [step.rank for step in steps] == [0, 2, 3]
    assert "presumed" in steps[1].waits_in


def test_silent_rank_is_a_second_cause_where_no_known_culprit_explains_the_wait() -> None:
    groups = [make.group("dp", (0, 1)), make.group("tp", (2, 3))]
    views = [
        make.rank(0, make.at("dp", 5, 6)),
        lost(1, make.at("dp", 5)),
        make.rank(2, make.at("tp", 8, 9)),
        make.rank(3, make.at("tp", 8), stack=make.stack(Activity.DATALOADER)),
    ]

    found = diagnose(make.snapshot(views, groups))

    assert [item.culprit_ranks for item in found] == ["3", "1"]
    assert found[1].confidence < 0.6


def test_of_two_silent_ranks_the_one_whose_groups_went_on_is_not_accused() -> None:
    """Peers finished tp #9 after rank 1 was last heard in #7: it was not stuck then."""
    groups = [make.world(0, 1, 2), make.group("tp", (0, 1))]
    views = [
        make.rank(0, make.at("world", 5, 6), make.at("tp", 9)),
        lost(1, make.at("world", 5), make.at("tp", 7)),
        lost(2, make.at("world", 5), node="node-c"),
    ]

    found = diagnose(make.snapshot(views, groups))[0]

    assert found.culprit_ranks == "2"
    assert found.confidence < 0.6


def test_lost_node_that_its_peers_saw_going_on_is_told_as_a_lost_agent() -> None:
    groups = [make.world(0, 1), make.group("tp", (0, 1))]
    views = [
        make.rank(0, make.at("world", 5, 6), make.at("tp", 9)),
        lost(1, make.at("world", 5), make.at("tp", 7)),
    ]

    found = diagnose(make.snapshot(views, groups))[0]

    assert found.culprits[0].condition is Condition.UNKNOWN
    assert "agent" in found.culprits[0].detail


def test_ranks_of_one_lost_node_are_one_cause_even_when_they_hold_up_different_groups() -> None:
    groups = [make.group("dp-0", (0, 2)), make.group("dp-1", (1, 3))]
    views = [
        make.rank(0, make.at("dp-0", 5, 6)),
        make.rank(1, make.at("dp-1", 5, 6)),
        lost(2, make.at("dp-0", 5)),
        lost(3, make.at("dp-1", 5)),
    ]

    found = diagnose(make.snapshot(views, groups))

    assert [(item.culprit_ranks, item.waiting) for item in found] == [("2-3", "0-1")]
    assert found[0].culprits[0].condition is Condition.NODE_LOST


def test_member_that_entered_the_call_and_was_not_dumped_is_inside_it() -> None:
    """Rank 1's counter says world #6 too, and nobody has finished that; dp waits for it."""
    groups = [make.world(0, 1, 2), make.group("dp", (1, 3))]
    views = [
        make.rank(0, make.at("world", 5, 6)),
        make.rank(1, make.counter_only("world", 6, seq=6), make.counter_only("dp", 2, seq=2)),
        make.rank(2, make.at("world", 5), stack=make.stack(Activity.DATALOADER)),
        make.rank(3, make.at("dp", 2, 3)),
    ]

    found = diagnose(make.snapshot(views, groups))

    assert [(item.culprit_ranks, item.waiting) for item in found] == [("2", "0-1,3")]


def test_cycle_is_proven_although_one_of_its_calls_waits_for_a_silent_rank_too() -> None:
    """Ranks 0 and 1 wait for each other; rank 0's call needs rank 2, which waits for rank 3."""
    groups = [make.world(0, 1, 2), make.group("tp", (0, 1)), make.group("pp", (2, 3))]
    views = [
        make.rank(0, make.at("world", 5, 6), make.at("tp", 0), stack=INSIDE),
        make.rank(1, make.at("world", 5), make.at("tp", 0, 1), stack=INSIDE),
        make.rank(2, make.at("world", 5), make.at("pp", 2, 3)),
        lost(3, make.at("pp", 2)),
    ]

    found = diagnose(make.snapshot(views, groups))[0]

    assert (found.kind, found.culprit_ranks) == (Kind.DEADLOCK, "0-1")


def test_rank_that_had_come_before_it_fell_silent_is_not_accused_beside_one_that_had_not() -> None:
    views = [
        make.rank(0, make.at("world", 5, 6)),
        lost(1, make.at("world", 5, 6)),
        lost(2, make.at("world", 5), node="node-c"),
    ]

    found = diagnose(make.snapshot(views, [make.world(0, 1, 2)]))[0]

    assert found.culprit_ranks == "2"


def test_short_wait_is_not_sure_and_a_death_is() -> None:
    def wait(stall_s: float, **facts: object) -> float:
        views = [make.rank(r, make.at("world", 5, 6, stall_s=stall_s)) for r in range(3)]
        gone = make.process("gone", exit_signal=9) if facts else make.process()
        last = make.rank(3, make.at("world", 5, stall_s=stall_s), facts=gone)
        return diagnose(make.snapshot([*views, last], [make.world(*range(4))]))[0].confidence

    assert wait(3.0) < 0.6 <= wait(6.0)
    assert wait(3.0, dead=True) > 0.9
