"""Ranks without counters: a hang only when chance explains no such run of samples."""

from __future__ import annotations

import random
from dataclasses import replace

import msgspec
import pytest
from tests.unit.server.detect.builders import beat, facts, finding, snapshot, view

from hangwatch_agent import wire
from hangwatch_server import detect
from hangwatch_server.detect import DetectSettings, sampling
from hangwatch_server.detect.memory import Memory, Sampling
from hangwatch_server.model import Activity, Kind, RankView, StackFacts, State

SETTINGS = DetectSettings()
INSIDE, OUTSIDE = Activity.COLLECTIVE, Activity.USER_CODE


def bare(rank: int, activity: Activity, leaf: str, at_s: float, taken_s: float) -> RankView:
    given = beat(rank, process=facts(state="S", cpu=1.0 if activity is INSIDE else 0.0))
    given = msgspec.structs.replace(given, depth=wire.Depth.BARE, groups=())
    stack = StackFacts(
        pid=given.pid,
        age_s=at_s - taken_s,
        where=leaf,
        leaf=leaf,
        activity=activity,
        same_leaf_captures=int(taken_s / 2) + 1,
        same_leaf_s=taken_s,
        capture=f"c{taken_s:g}",
    )
    return replace(view(given), stack=stack)


def stuck_at(at_s: float) -> list[RankView]:
    """Ranks spin in a collective for rank 2; a sample of all every two seconds."""
    taken_s = at_s - at_s % 2
    return [
        bare(r, OUTSIDE if r == 2 else INSIDE, "train.py:9 in f", at_s, taken_s) for r in range(4)
    ]


def bound(outcomes: list[bool]) -> sampling.Bound:
    return sampling.bound(Sampling(outcomes=tuple(outcomes)), SETTINGS)


def test_samples_that_never_look_stuck_at_work_need_few_to_prove_a_hang() -> None:
    found = bound([False] * 400 + [True] * 6)

    assert found.needed <= 20
    assert bound([False] * 400 + [True] * found.needed).is_met
    assert not bound([False] * 400 + [True] * (found.needed - 1)).is_met


def test_chance_that_remains_is_under_the_stated_rate() -> None:
    healthy = [False, False, False, True, False, True, True, False] * 40
    found = bound(healthy)

    assert found.chance**found.needed <= SETTINGS.false_alarm_rate


def test_job_that_waits_for_long_at_work_needs_twice_its_longest_run() -> None:
    healthy = ([True] * 30 + [False] * 5) * 10

    assert bound(healthy).needed >= 61


def test_without_a_sample_at_work_half_of_them_are_assumed_to_look_stuck() -> None:
    assert bound([True] * 19).needed == 20
    assert not bound([True] * 19).is_met
    assert bound([True] * 20).is_met


def test_stated_rate_is_a_setting() -> None:
    lax = replace(SETTINGS, false_alarm_rate=1e-3)

    assert sampling.bound(Sampling(outcomes=(True,) * 10), lax).is_met


@pytest.mark.parametrize("chance", [0.05, 0.3, 0.6])
def test_no_false_alarm_in_twenty_thousand_samples_of_a_job_at_work(chance: float) -> None:
    dice = random.Random(7)
    memory = Sampling()
    outcomes: list[bool] = []

    for _ in range(20_000 // 50):
        outcomes = [*outcomes, *(dice.random() < chance for _ in range(50))][-512:]
        memory = replace(memory, outcomes=tuple(outcomes))
        assert not sampling.bound(memory, SETTINGS).is_met


def test_why_states_the_rate_and_what_it_rests_on() -> None:
    words = bound([False] * 100 + [True] * 3).in_words()

    assert "3 samples in a row look stuck" in words
    assert "by 100 samples of it at work" in words
    assert "less than once in 1,000,000 times" in words


def run(until_s: int) -> list[tuple[int, detect.Decision]]:
    memory = Memory()
    log = []
    for at_s in range(until_s + 1):
        seen = snapshot(stuck_at(float(at_s)), 1000.0 + at_s, age_s=600.0)
        memory, decision = detect.step(memory, seen, finding(float(at_s)), SETTINGS)
        log.append((at_s, decision))
    return log


def test_bare_job_is_hung_only_once_its_samples_rule_chance_out() -> None:
    log = run(60)

    hung_s = next(at_s for at_s, decision in log if decision.state is State.HUNG)
    assert log[hung_s - 1][1].state is State.SUSPECTED
    assert "too few samples" in log[hung_s - 1][1].reason
    assert hung_s == 40  # twenty samples, two seconds apart, after the first
    assert "20 make a hang" in log[hung_s][1].limits.why


def test_bare_ranks_that_the_kernel_has_not_run_need_no_samples() -> None:
    def still(item: RankView, at_s: float) -> RankView:
        assert item.beat is not None
        process = facts(still_s=at_s)
        return replace(item, beat=msgspec.structs.replace(item.beat, process=process))

    seen = snapshot([still(item, 20.0) for item in stuck_at(20.0)])

    assert not sampling.is_needed(seen, finding(20.0))
    assert sampling.is_needed(snapshot(stuck_at(20.0)), finding(20.0))
    assert not sampling.is_needed(snapshot([view(beat(r)) for r in range(4)]), finding(20.0))


def test_sample_in_which_somebody_moved_does_not_look_stuck() -> None:
    first = sampling.observe(Sampling(), snapshot(stuck_at(0.0), 0.0), SETTINGS)
    same = sampling.observe(first, snapshot(stuck_at(2.0), 2.0), SETTINGS)
    moved = [*stuck_at(4.0)[:3], bare(3, OUTSIDE, "train.py:12 in g", 4.0, 4.0)]
    other = sampling.observe(same, snapshot(moved, 4.0), SETTINGS)

    assert same.outcomes == (True,)
    assert other.outcomes == (True, False)


def test_samples_closer_than_two_seconds_count_once() -> None:
    first = sampling.observe(Sampling(), snapshot(stuck_at(0.0), 0.0), SETTINGS)
    views = [bare(r, INSIDE, "x", 1.9, 1.9) for r in range(4)]

    assert sampling.observe(first, snapshot(views, 1.9), SETTINGS) == first


def test_bare_ranks_that_are_mostly_seen_in_one_collective_are_not_hung_by_time_alone() -> None:
    """A job that communicates most of the time: of six looks one shows another line."""
    memory, states = Memory(), []
    for second in range(0, 330, 2):
        leaf = "train.py:12 in g" if second % 12 == 0 else "train.py:9 in f"
        views = [bare(r, INSIDE, leaf, float(second), float(second)) for r in range(4)]
        found = finding(float(second), (), kind=Kind.STALLED_COLLECTIVE, waiting="0-3")
        memory, decision = detect.step(memory, snapshot(views, 1000.0 + second, 600.0), found)
        states.append(decision.state)

    assert State.SUSPECTED in states
    assert State.HUNG not in states
