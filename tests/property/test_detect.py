"""What must hold for any course of a job: no hang without evidence, bounded wishes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.server.detect.builders import NONE, Clockwork, beat, facts, finding, view

from hangwatch_server import detect
from hangwatch_server.model import Finding, Kind, Link, RankView, State

AGES = st.lists(st.floats(0, 400, allow_nan=False), min_size=1, max_size=30)
KINDS = st.sampled_from([kind for kind in Kind if kind is not Kind.NONE])


@given(AGES, KINDS, st.sampled_from(Link), st.sampled_from(["R", "S", "D", "T", "gone"]))
def test_any_course_gives_a_decision_with_bounded_wishes(
    ages: list[float], kind: Kind, link: Link, state: str
) -> None:
    memory = detect.Memory()

    for index, age_s in enumerate(ages):
        views = [view(beat(rank, age_s, process=facts(state)), link=link) for rank in range(3)]
        clock = Clockwork(lambda _, v=views: v, lambda _, a=age_s: finding(a, kind=kind))
        clock.memory = memory
        decision = clock.tick(float(index))
        memory = clock.memory

        assert decision.stalled_s >= 0
        assert all(0 < len(wish.ranks) <= 10 for wish in decision.wishes)
        assert decision.reason


@given(st.lists(st.floats(0, 9.9, allow_nan=False), min_size=1, max_size=40))
def test_stall_under_the_floor_is_never_suspected(ages: list[float]) -> None:
    def beats(at_s: float) -> list[RankView]:
        return [view(beat(rank, ages[int(at_s)])) for rank in range(4)]

    def found(at_s: float) -> Finding:
        return NONE if int(at_s) % 2 else finding(ages[int(at_s)] / 2)

    clock = Clockwork(beats, found).run(len(ages) - 1)

    assert State.HUNG not in clock.states()


@settings(max_examples=20)
@given(st.floats(0.05, 1.0), st.integers(20, 299))
def test_rank_that_works_is_not_hung_within_five_minutes(cpu: float, until_s: int) -> None:
    def beats(at_s: float) -> list[RankView]:
        return [view(beat(rank, at_s, process=facts(cpu=cpu))) for rank in range(4)]

    clock = Clockwork(beats, finding).run(until_s)

    assert State.HUNG not in clock.states()
