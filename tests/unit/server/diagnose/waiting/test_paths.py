"""The way from a waiting rank to what it waits for in the end."""

from __future__ import annotations

from tests.unit.server.diagnose import builders as make

from hangwatch_server.diagnose import diagnose, path
from hangwatch_server.model import Activity, Kind, Snapshot

INSIDE = make.stack(Activity.COLLECTIVE, op="all_reduce")


def ring(size: int) -> Snapshot:
    """Rank r waits in group r for rank r + 1, and the last for the first."""
    groups = [make.group(f"g{r}", (r, (r + 1) % size)) for r in range(size)]
    views = [
        make.rank(
            r,
            make.at(f"g{r}", 5, 6),
            make.at(f"g{(r - 1) % size}", 5),
            stack=INSIDE,
        )
        for r in range(size)
    ]
    return make.snapshot(views, groups)


def test_cycle_over_three_groups_names_its_three_ranks() -> None:
    found = diagnose(ring(3))

    assert [(item.kind, item.culprit_ranks) for item in found] == [(Kind.DEADLOCK, "0-2")]
    assert [(step.rank, step.for_) for step in found[0].cycle] == [(0, (1,)), (1, (2,)), (2, (0,))]
    assert found[0].is_hard


def test_rank_inside_a_cycle_has_the_way_round_back_to_itself() -> None:
    steps = path(ring(3), 1)

    assert [(step.rank, step.for_) for step in steps] == [(1, (2,)), (2, (0,)), (0, (1,))]


def test_cycle_of_a_thousand_ranks_is_found() -> None:
    found = diagnose(ring(1000))[0]

    assert (found.kind, found.culprit_ranks) == (Kind.DEADLOCK, "0-999")


def test_rank_that_waits_for_nobody_has_no_way() -> None:
    views = [make.rank(0, make.at("world", 5, 6)), make.rank(1, make.at("world", 5))]
    snapshot = make.snapshot(views, [make.world(0, 1)])

    assert path(snapshot, 1) == ()
    assert path(snapshot, 77) == ()


def test_way_to_a_collective_that_all_entered_ends_there() -> None:
    views = [make.rank(r, make.at("world", 5, 6)) for r in range(3)]

    steps = path(make.snapshot(views, [make.world(0, 1, 2)]), 2)

    assert [(step.rank, step.waits_in, step.for_) for step in steps] == [
        (2, "the default group all_reduce #6", ())
    ]


def test_key_does_not_change_with_the_age_of_the_fronts() -> None:
    def hang(first_s: float, second_s: float) -> Snapshot:
        groups = [make.group("a", (0, 2)), make.group("b", (1, 2))]
        views = [
            make.rank(0, make.at("a", 5, 6, stall_s=first_s)),
            make.rank(1, make.at("b", 5, 6, stall_s=second_s)),
            make.rank(2, make.at("a", 5), make.at("b", 5)),
        ]
        return make.snapshot(views, groups)

    assert diagnose(hang(12.0, 12.4))[0].key == diagnose(hang(14.4, 14.0))[0].key
