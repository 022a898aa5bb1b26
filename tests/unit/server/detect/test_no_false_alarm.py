"""Jobs that are slow and healthy: nothing is confirmed, and every suspicion clears."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from tests.unit.server.detect.builders import (
    NONE,
    Beats,
    Clockwork,
    beat,
    changed,
    facts,
    finding,
    frozen_stack,
    stuck,
    view,
)

from hangwatch_agent import wire
from hangwatch_server.model import Activity, Finding, Kind, Link, RankView, State


def test_steps_of_six_seconds_raise_nothing() -> None:
    def beats(at_s: float) -> list[RankView]:
        return [view(beat(rank, at_s % 6)) for rank in range(4)]

    def found(at_s: float) -> Finding:
        return NONE if at_s % 6 < 1 else finding(at_s % 6, (), kind=Kind.NO_PROGRESS, waiting="0-3")

    assert Clockwork(beats, found).run(120).states() == [State.HEALTHY]


def test_straggler_three_times_slower_raises_nothing() -> None:
    def beats(at_s: float) -> list[RankView]:
        return [view(beat(rank, at_s % 1.2)) for rank in range(4)]

    clock = Clockwork(beats, lambda at_s: finding(at_s % 1.2)).run(120)

    assert clock.states() == [State.HEALTHY]


def test_checkpoint_of_fourteen_seconds_is_an_expected_wait() -> None:
    def pause(at_s: float) -> float:
        return at_s if at_s < 14 else at_s % 1.0

    def found(at_s: float) -> Finding:
        return finding(at_s, (2,)) if at_s < 14 else NONE

    clock = Clockwork(lambda at_s: stuck()(pause(at_s)), found, frozen_stack(Activity.CHECKPOINT))

    assert clock.run(40).states() == [State.HEALTHY, State.EXPECTED_WAIT, State.HEALTHY]


def test_frozen_checkpoint_is_hung_after_two_minutes_only() -> None:
    clock = Clockwork(stuck(), finding, frozen_stack(Activity.CHECKPOINT)).run(130)

    assert clock.first(State.EXPECTED_WAIT) == 10
    assert clock.first(State.HUNG) == 120


def test_checkpoint_that_works_is_expected_until_its_limit() -> None:
    clock = Clockwork(stuck(facts(cpu=0.5)), finding, frozen_stack(Activity.CHECKPOINT)).run_to(905)

    assert clock.first(State.HUNG) == 900


def test_wait_for_a_batch_is_no_phase() -> None:
    clock = Clockwork(stuck(), finding, frozen_stack(Activity.DATALOADER)).run(25)

    assert State.EXPECTED_WAIT not in clock.states()
    assert State.HUNG in clock.states()


def test_compiler_at_work_makes_a_compile_phase_without_any_stack() -> None:
    compiler = wire.ChildFacts(pid=9, name="ptxas", role="compile", state="R", cpu_share=1.0)

    clock = Clockwork(stuck(facts(children=(compiler,))), finding).run_to(400)

    assert clock.states() == [State.HEALTHY, State.EXPECTED_WAIT]


def announced(phase: str, limit_s: float | None, since_s: float = 0.0) -> Beats:
    def beats(at_s: float) -> list[RankView]:
        views = stuck()(at_s)
        given = changed(beat(2, at_s), phase=phase, phase_s=at_s + since_s, phase_limit_s=limit_s)
        views[2] = view(given)
        return views

    return beats


def test_announced_phase_is_expected_until_its_own_limit_even_when_frozen() -> None:
    clock = Clockwork(announced("export", 200.0), finding, frozen_stack()).run(210)

    assert clock.states() == [State.HEALTHY, State.EXPECTED_WAIT, State.HUNG]
    assert clock.first(State.HUNG) == 200


def test_announced_phase_without_limit_or_known_name_hides_no_hang() -> None:
    clock = Clockwork(announced("train", None), finding, frozen_stack()).run(25)

    assert State.HUNG in clock.states()


def test_announced_checkpoint_has_the_limit_of_checkpoints() -> None:
    clock = Clockwork(announced("checkpoint", None), finding, frozen_stack()).run_to(905)

    assert clock.first(State.HUNG) == 900


def test_job_with_long_steps_learns_its_limit() -> None:
    def beats(at_s: float) -> list[RankView]:
        return [view(beat(rank, at_s % 8)) for rank in range(4)]

    def found(at_s: float) -> Finding:
        return NONE if at_s % 8 < 1 else finding(at_s % 8)

    clock = Clockwork(beats, found).run(8 * 60)
    limits = clock.log[-1][1].limits

    assert clock.states() == [State.HEALTHY]
    assert 18 <= limits.suspect_after_s <= 24
    assert 30 <= limits.confirm_after_s <= 40
    assert "over the 10 s floor" in limits.why


def steps_of(length_s: float, count: int) -> Clockwork:
    def beats(at_s: float) -> list[RankView]:
        return [view(beat(rank, at_s % length_s)) for rank in range(4)]

    return Clockwork(beats, lambda at_s: NONE).run(length_s * count)


def test_floors_apply_before_fifty_gaps_are_seen() -> None:
    limits = steps_of(3.0, 40).log[-1][1].limits

    assert (limits.suspect_after_s, limits.confirm_after_s) == (10, 15)
    assert "of 50 gaps in training seen: the floors" in limits.why


def test_floors_give_way_where_the_first_steps_are_plainly_longer() -> None:
    limits = steps_of(20.0, 4).log[-1][1].limits

    assert (limits.suspect_after_s, limits.confirm_after_s) == (57, 95)
    assert "3 x the third longest of the newest (19.0 s) is over the 10 s floor" in limits.why


def test_checkpoint_gaps_do_not_raise_the_limit_of_training() -> None:
    def stalled(at_s: float) -> float:
        return at_s % 60 - 40 if at_s % 60 > 40 else at_s % 1.0

    def found(at_s: float) -> Finding:
        return finding(stalled(at_s)) if stalled(at_s) > 1 else NONE

    clock = Clockwork(
        lambda at_s: stuck()(stalled(at_s)), found, frozen_stack(Activity.CHECKPOINT)
    ).run(600)

    assert clock.log[-1][1].limits.suspect_after_s == 10
    assert State.HUNG not in clock.states()


def test_job_that_waits_an_hour_in_a_queue_raises_nothing() -> None:
    """Its ranks have trained before, and look for work once a second now."""

    def beats(at_s: float) -> list[RankView]:
        polls = facts(main_cpu_s=at_s * 0.0002, still_s=at_s % 1.0)
        return [view(beat(rank, at_s, process=polls)) for rank in range(4)]

    def found(at_s: float) -> Finding:
        if at_s < 10:
            return NONE
        return finding(at_s, (), kind=Kind.NO_PROGRESS, waiting="")

    clock = Clockwork(beats, found).run_to(3600)

    assert clock.states() == [State.HEALTHY, State.UNKNOWN]


def test_job_whose_processes_do_not_exist_yet_raises_nothing_in_an_hour() -> None:
    clock = Clockwork(lambda at_s: [view(None, rank=r) for r in range(4)], lambda at_s: NONE)

    assert clock.run_to(3600).states() == [State.UNKNOWN]


def test_frozen_pause_that_ended_by_itself_twice_raises_no_third_alarm() -> None:
    """A pause of 35 s every 100 s, in which nothing of rank 2 moves."""

    def stalled(at_s: float) -> float:
        return at_s % 100 if at_s % 100 < 35 else at_s % 1.0

    def beats(at_s: float) -> list[RankView]:
        return stuck(facts(state="S", still_s=stalled(at_s)))(stalled(at_s))

    def found(at_s: float) -> Finding:
        return finding(stalled(at_s)) if stalled(at_s) > 1 else NONE

    clock = Clockwork(beats, found, frozen_stack()).run(400)

    hung = {int(at_s // 100) for at_s, decision in clock.log if decision.state is State.HUNG}
    assert hung == {0, 1}
    why = clock.at(190).limits.why
    assert "put off to 51 s: 2 frozen pauses of up to 34 s ended by themselves" in why


def test_agent_that_restarts_during_a_wait_makes_no_hang() -> None:
    """Rank 2 computes for a minute; its agent is away from second 10 to 40."""

    def beats(at_s: float) -> list[RankView]:
        heard_s = min(at_s, 10.0) if at_s < 40 else at_s
        age_s = at_s - heard_s
        link = Link.LIVE if age_s < 5 else Link.LATE if age_s < 20 else Link.LOST
        process = facts(state="R", cpu=None, main_cpu_s=heard_s * 0.9)
        views = stuck()(at_s)
        return [*views[:2], view(beat(2, heard_s, process=process), None, link, age_s), views[3]]

    clock = Clockwork(beats, finding).run(60)

    assert State.HUNG not in clock.states()


def test_crowded_machine_makes_no_hang_of_a_rank_that_wants_to_run() -> None:
    crowded = facts(state="R", cpu=0.02, delay=0.9)

    assert State.HUNG not in Clockwork(stuck(crowded), finding, frozen_stack()).run(60).states()


def test_agent_that_is_late_while_its_rank_evaluates_makes_no_hang() -> None:
    """Rank 2 goes on in another group for ten minutes; its agent is away from second 400 to 415."""

    def beats(at_s: float) -> list[RankView]:
        age_s = at_s - 400 if 400 < at_s < 415 else 0.0
        link = Link.LATE if age_s >= 5 else Link.LIVE
        views = stuck()(at_s)
        return [*views[:2], view(beat(2, min(at_s, 0.5)), None, link, age_s), views[3]]

    clock = Clockwork(beats, finding).run_to(404)
    clock.tick(404.8)  # not late yet, and yet its last call is five seconds ago
    clock.run(420, since_s=405)

    assert State.HUNG not in clock.states()


def test_short_wait_for_a_rank_whose_agent_was_lost_long_before_raises_nothing() -> None:
    """Its collectives went on without its agent; now it takes forty seconds once."""

    def beats(at_s: float) -> list[RankView]:
        views = stuck()(at_s)
        return [*views[:2], view(beat(2), link=Link.LOST, age_s=600.0 + at_s), views[3]]

    clock = Clockwork(beats, finding).run(40)

    assert clock.states() == [State.UNKNOWN]


def test_rank_that_polls_while_another_prepares_the_data_raises_nothing() -> None:
    def stacks(at_s: float) -> dict[int, tuple[Activity, str]]:
        polls, prepares = "lock.py:7 in poll", f"data.py:{at_s:g} in prepare"
        return {2: (Activity.USER_CODE, prepares), 3: (Activity.USER_CODE, polls)}

    def found(at_s: float) -> Finding:
        return finding(at_s, (2, 3), waiting="0-1")

    clock = Clockwork(stuck(facts(cpu=0.9)), found, stacks)

    assert State.HUNG not in clock.run(100).states()
    assert clock.at(100).state is State.SLOW
    assert clock.run(130, since_s=101).first(State.HUNG) == 120


def test_working_rank_has_half_of_a_short_group_timeout() -> None:
    clock = Clockwork(stuck(facts(cpu=0.9), timeout_s=60.0), finding).run(35)

    assert clock.first(State.HUNG) == 30


def test_idle_rank_that_is_only_presumed_to_be_missing_is_not_called_frozen() -> None:
    """It waits as idly as its victims would: until five minutes that proves nothing."""

    def presumed(at_s: float) -> Finding:
        return replace(finding(at_s), is_presumed=True)

    clock = Clockwork(lambda at_s: [view(beat(r, at_s)) for r in range(4)], presumed).run(60)

    assert clock.at(60).state is State.SUSPECTED
    assert "nothing tells whether" in clock.at(60).reason


def test_rank_that_its_agent_no_longer_reports_is_unknown_however_long_others_wait() -> None:
    def beats(at_s: float) -> list[RankView]:
        heard = [view(beat(r, at_s)) for r in (0, 1, 3)]
        return [*heard, view(beat(2, at_s)) if at_s < 8 else view(None, 2, node="node-2")]

    clock = Clockwork(beats, finding).run_to(400)

    assert State.HUNG not in clock.states()
    assert clock.at(400).state is State.UNKNOWN
    assert "not reported" in clock.at(400).reason


def traced(at_s: float, *, while_traced: wire.ProcessFacts) -> RankView:
    """Rank 2, at work for as long as others wait, and traced in every fifth heartbeat."""
    process = while_traced if at_s % 5 == 0 else facts("R", 0.9)
    return view(beat(2, at_s, process=process))


@pytest.mark.parametrize(
    "while_traced",
    [facts("t"), facts("T"), msgspec.structs.replace(facts("t"), is_being_read=True)],
)
def test_working_rank_that_somebody_looks_at_is_not_frozen(
    while_traced: wire.ProcessFacts,
) -> None:
    def beats(at_s: float) -> list[RankView]:
        waiting = [view(beat(r, at_s)) for r in (0, 1, 3)]
        return [*waiting, traced(at_s, while_traced=while_traced)]

    clock = Clockwork(beats, finding).run(60)

    assert State.HUNG not in clock.states()


def test_rank_that_a_native_capture_of_ours_holds_for_long_is_not_frozen() -> None:
    held = msgspec.structs.replace(facts("t"), is_being_read=True)

    clock = Clockwork(stuck(held), finding).run(25)

    assert State.HUNG not in clock.states()


def test_rank_that_is_stopped_in_the_same_old_heartbeat_twice_is_not_frozen_yet() -> None:
    def beats(at_s: float) -> list[RankView]:
        stopped = beat(2, at_s, process=facts("T" if at_s >= 14 else "R", 0.9))
        last = view(stopped, age_s=max(0.0, at_s - 14))  # its node is not heard since
        return [*(view(beat(r, at_s)) for r in (0, 1, 3)), last]

    assert State.HUNG not in Clockwork(beats, finding).run(18).states()
