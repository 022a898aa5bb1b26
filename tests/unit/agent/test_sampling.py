"""How often ranks without a probe are looked at, and at what cost."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from hangwatch_agent import sampling
from hangwatch_agent.sampling import Pace, Subject

COST_S = 0.025


def ranks(count: int, quiet: Sequence[int] = (), launch: str = "job") -> list[Subject]:
    return [Subject((launch, rank, 100 + rank), rank in quiet) for rank in range(count)]


def watch(
    pace: Pace, subjects: list[Subject], from_s: float, to_s: float, *, moves: bool = True
) -> list[tuple[float, int]]:
    """Every look from one time to another, as (time, rank)."""
    looks = []
    for tick in range(int((to_s - from_s) / sampling.TICK_S)):
        now_s = from_s + tick * sampling.TICK_S
        subject = pace.next(subjects, now_s)
        if subject is not None:
            looks.append((now_s, subject.key[1]))
            place = f"{now_s if moves else ''}"
            pace.saw(subject.key, f"place {place}", now_s, COST_S)
    return looks


def test_each_rank_is_looked_at_once_at_first() -> None:
    looks = watch(Pace(), ranks(4), 0.0, 4.0)

    assert [rank for _, rank in looks] == [0, 1, 2, 3]


def test_calm_ranks_are_looked_at_in_turn_and_rarely() -> None:
    pace = Pace()
    watch(pace, ranks(4), 0.0, 10.0)

    looks = watch(pace, ranks(4), 10.0, 10.0 + 8 * sampling.CALM_S)

    assert len(looks) in (7, 8)
    assert {rank for _, rank in looks} == {0, 1, 2, 3}


def test_quiet_rank_hurries_every_rank_of_its_job() -> None:
    pace = Pace()
    watch(pace, ranks(4), 0.0, 10.0)

    looks = watch(pace, ranks(4, quiet=[1]), 10.0, 22.0)

    for rank in range(4):
        times = [at_s for at_s, looked in looks if looked == rank]
        assert len(times) >= 3
        assert max(b - a for a, b in itertools.pairwise(times)) <= 2 * sampling.QUICK_S


def test_quiet_rank_of_one_job_does_not_hurry_another() -> None:
    pace = Pace()
    mine, others = ranks(1, quiet=[0]), ranks(1, launch="other")
    watch(pace, [*mine, *others], 0.0, 10.0)

    looks = [
        subject.key[0]
        for tick in range(40)
        if (subject := pace.next([*mine, *others], 10.0 + tick * sampling.TICK_S))
        and pace.saw(subject.key, f"{tick}", 10.0 + tick * sampling.TICK_S, COST_S) is None
    ]

    assert looks.count("job") > 2 * looks.count("other")


def test_rank_at_the_same_place_twice_is_looked_at_more_often_while_there_is_budget() -> None:
    saved, spent = Pace(), Pace()
    saved.budget.left_s = sampling.MOST_S

    often = watch(saved, ranks(4), 0.0, 30.0, moves=False)
    rarely = watch(spent, ranks(4), 0.0, 30.0, moves=False)

    assert len(often) > 2 * len(rarely)


def test_looks_never_cost_more_than_their_share_in_the_long_run() -> None:
    pace, hour_s = Pace(), 3600.0

    looks = watch(pace, ranks(64, quiet=range(64)), 0.0, hour_s, moves=False)

    spent_s = len(looks) * COST_S
    assert spent_s <= sampling.FIRST_S + sampling.SHARE * hour_s + COST_S


def test_costly_looks_are_taken_less_often() -> None:
    pace = Pace()

    for number in range(400):
        now_s = number * 1.0
        subject = pace.next(ranks(1, quiet=[0]), now_s)
        if subject is not None:
            pace.saw(subject.key, "same", now_s, 0.5)

    assert pace.budget.left_s > -0.5


def test_rank_that_is_gone_is_forgotten() -> None:
    pace = Pace()
    watch(pace, ranks(2), 0.0, 3.0)

    assert {rank for _, rank in watch(pace, ranks(1), 3.0, 30.0)} == {0}
