"""What outlives a restart: the place where attempts stand still, and a server's limits."""

from __future__ import annotations

from dataclasses import replace

from tests.support.verdicts import verdict
from tests.unit.server.detect.builders import NONE, Clockwork, beat, facts, finding, stuck, view

from hangwatch_server import detect
from hangwatch_server.detect.memory import Memory
from hangwatch_server.model import Limits, RankView, State

STOPPED = facts(state="T")
LIMITS = Limits(suspect_after_s=54.0, confirm_after_s=90.0, why="")


def hung_attempt(memory: Memory, number: int) -> Memory:
    clock = Clockwork(stuck(STOPPED), finding, memory=memory).run(16)
    return detect.next_attempt(clock.memory, number, finding(16), State.HUNG)


def texts(decision: detect.Decision) -> list[str]:
    return [item.text for item in decision.evidence]


def test_second_attempt_that_hangs_at_the_same_place_says_so() -> None:
    clock = Clockwork(stuck(STOPPED), finding, memory=hung_attempt(Memory(), 1)).run(16)

    assert clock.at(16).state is State.HUNG
    assert "an earlier attempt stood still at the same place" in clock.at(15).reason
    assert "Attempt 1 stood still at the same place (rank 2" in texts(clock.at(16))[0]


def test_attempt_that_hangs_elsewhere_says_nothing_of_the_one_before() -> None:
    clock = Clockwork(
        stuck(STOPPED, rank=1), lambda at_s: finding(at_s, (1,)), memory=hung_attempt(Memory(), 1)
    ).run(16)

    assert not any("same place" in text for text in texts(clock.at(16)))


def test_restart_clears_stall_and_limits_but_not_what_it_must_not_hide() -> None:
    memory = hung_attempt(Memory(gaps={"training": (9.0,) * 60}, pace={"training": 9.0}), 1)

    assert memory.stall is None
    assert not memory.gaps
    assert [ended.attempt for ended in memory.attempts] == [1]


def test_attempt_that_ended_well_is_no_hang() -> None:
    clock = Clockwork(lambda at_s: [view(beat(r)) for r in range(4)], lambda at_s: NONE).run(5)
    memory = detect.next_attempt(clock.memory, 1, NONE, State.HEALTHY)

    assert not memory.attempts[0].was_hung


def test_two_restarts_without_progress_are_told_and_one_is_not() -> None:
    once = hung_attempt(Memory(), 1)
    twice = hung_attempt(once, 2)

    after_one = Clockwork(stuck(STOPPED), finding, memory=once).run(16).at(16)
    after_two = Clockwork(stuck(STOPPED), finding, memory=twice).run(16).at(16)

    assert not any("without progress" in text for text in texts(after_one))
    assert texts(after_two)[1] == (
        "Attempts 1 and 2 came no further than 10 calls, this one is at 10:"
        " the job restarts without progress."
    )


def test_attempt_that_comes_further_ends_the_row() -> None:
    memory = hung_attempt(hung_attempt(Memory(), 1), 2)

    def beats(at_s: float) -> list[RankView]:
        return [view(beat(r, at_s, counter=12, process=STOPPED)) for r in range(4)]

    decision = Clockwork(beats, finding, memory=memory).run(16).at(16)

    assert not any("without progress" in text for text in texts(decision))


def test_new_server_knows_the_limits_and_the_hangs_of_before() -> None:
    before = replace(verdict(attempt=1), group=finding(0).group, op="", culprit_ranks="2")

    memory = detect.inherit(Memory(), LIMITS, [before])
    clock = Clockwork(stuck(STOPPED), finding, memory=memory).run(16)

    assert clock.at(16).state is State.HEALTHY
    assert clock.at(16).limits.confirm_after_s == 90
    assert "from before the server's restart" in clock.at(16).limits.why
    assert "Attempt 1 stood still at the same place" in texts(clock.at(16))[0]


def test_limits_from_before_end_once_the_pace_is_known() -> None:
    memory = replace(
        detect.inherit(Memory(), LIMITS, ()),
        gaps={"training": (1.0,) * 50},
        pace={"training": 1.0},
    )

    assert Clockwork(stuck(), finding, memory=memory).tick(0).limits.confirm_after_s == 15


def test_limits_that_were_never_set_are_not_inherited() -> None:
    nothing = Limits(suspect_after_s=0.0, confirm_after_s=0.0, why="")

    assert detect.inherit(Memory(), nothing, ()).inherited is None
