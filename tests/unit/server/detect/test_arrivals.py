"""Who arrives last most often: told as evidence, never an alarm."""

from __future__ import annotations

from tests.unit.server.detect.builders import NONE, Clockwork, beat, finding, view

from hangwatch_server.detect import DetectSettings, arrivals
from hangwatch_server.detect.memory import Arrival
from hangwatch_server.model import Finding, RankView, State

SETTINGS = DetectSettings()


def waits(*ranks: int, group: str = "dp", wait_s: float = 1.2) -> list[Arrival]:
    return [Arrival(ranks=(rank,), group=group, wait_s=wait_s) for rank in ranks]


def test_rank_that_comes_last_in_most_waits_is_named_with_how_late_it_is() -> None:
    told = arrivals.evidence(waits(*[3] * 41, *[1] * 9), SETTINGS)

    assert [item.text for item in told] == [
        "Rank 3 arrived last in 41 of the last 50 waits, usually 1.2 s after the others."
    ]


def test_half_of_the_waits_makes_a_straggler_and_less_does_not() -> None:
    assert [item.rank for item in arrivals.ranked(waits(*[3] * 10, *range(4, 14)), SETTINGS)] == [3]
    assert arrivals.ranked(waits(*[3] * 9, *range(4, 15)), SETTINGS) == ()


def test_twenty_waits_are_needed_to_name_anybody() -> None:
    assert arrivals.ranked(waits(*[3] * 19), SETTINGS) == ()
    assert len(arrivals.ranked(waits(*[3] * 20), SETTINGS)) == 1


def test_straggler_of_one_group_is_named_with_its_group() -> None:
    seen = waits(*[3] * 25, group="tp-0") + waits(*range(10, 70), group="dp-1")

    assert "25 of the last 25 waits of tp-0" in arrivals.evidence(seen, SETTINGS)[0].text


def test_worst_straggler_comes_first() -> None:
    seen = waits(*[3] * 30, wait_s=0.6) + waits(*[5] * 30, wait_s=4.0)

    assert [item.rank for item in arrivals.ranked(seen, SETTINGS)] == [5, 3]


def test_straggler_at_every_step_is_counted_and_raises_nothing() -> None:
    """Each step the others wait two seconds for rank 2."""

    def beats(at_s: float) -> list[RankView]:
        return [view(beat(rank, at_s % 3)) for rank in range(4)]

    def found(at_s: float) -> Finding:
        return finding(at_s % 3) if at_s % 3 else NONE

    clock = Clockwork(beats, found).run(90)

    assert clock.states() == [State.HEALTHY]
    assert clock.at(90).evidence[0].text.startswith("Rank 2 arrived last in 30 of the last 30")
