"""States of jobs that do not stall: starting, healthy, finished, failed, and unheard."""

from __future__ import annotations

from tests.unit.server.detect.builders import (
    NONE,
    Clockwork,
    beat,
    changed,
    facts,
    finding,
    frozen_stack,
    snapshot,
    view,
)

from hangwatch_agent import wire
from hangwatch_server import detect, model
from hangwatch_server.model import Finding, Kind, Link, State


def decide(seen: model.Snapshot, found: Finding = NONE) -> detect.Decision:
    return detect.step(detect.Memory(), seen, found, detect.DetectSettings())[1]


def gone(rank: int, code: int | None = None, signal: int | None = None) -> model.RankView:
    return view(beat(rank, process=facts(state="gone", code=code, signal=signal)))


def test_job_whose_ranks_go_on_is_healthy() -> None:
    assert decide(snapshot([view(beat(r)) for r in range(4)])).state is State.HEALTHY


def test_job_without_any_collective_yet_is_starting() -> None:
    views = [view(beat(r, counter=0)) for r in range(4)]

    assert decide(snapshot(views, age_s=5)).state is State.STARTING


def test_job_of_which_not_all_ranks_report_is_starting_then_unknown() -> None:
    views = [view(beat(0)), view(None, rank=1)]

    assert decide(snapshot(views, age_s=5)).state is State.STARTING
    assert decide(snapshot(views, age_s=500)).state is State.UNKNOWN


def test_all_gone_with_code_zero_is_finished() -> None:
    assert decide(snapshot([gone(0, code=0), gone(1, code=0)])).state is State.FINISHED


def test_one_bad_exit_makes_the_ended_job_failed() -> None:
    failed = decide(snapshot([gone(0, code=0), gone(1, code=1)]))
    killed = decide(snapshot([gone(0, code=0), gone(1, signal=9)]))

    assert (failed.state, failed.reason) == (State.FAILED, "rank 1 ended badly: exit code 1")
    assert (killed.state, killed.reason) == (State.FAILED, "rank 1 ended badly: signal 9")


def test_gone_for_an_unknown_cause_is_unknown() -> None:
    assert decide(snapshot([gone(0, code=0), gone(1)])).state is State.UNKNOWN


def test_job_is_over_only_when_no_restart_followed() -> None:
    clock = Clockwork(lambda at_s: [gone(0), gone(1, signal=9)], lambda at_s: NONE).run(50)

    assert [at_s for at_s, decision in clock.log if decision.is_over] == list(range(40, 51))


def test_gone_after_leaving_training_is_finished() -> None:
    left = changed(beat(0, process=facts(state="gone")), is_destroyed=True)

    assert decide(snapshot([view(left)])).state is State.FINISHED


def test_dead_agent_whose_peers_go_on_is_blind_not_hung() -> None:
    def beats(at_s: float) -> list[model.RankView]:
        return [view(beat(0)), view(beat(1), link=Link.LOST, age_s=at_s)]

    assert Clockwork(beats, lambda at_s: NONE).run(200).states() == [State.UNKNOWN]


def test_no_agent_heard_is_unknown_even_during_a_stall() -> None:
    views = [view(beat(r, 50), link=Link.LOST, age_s=30) for r in range(4)]

    assert decide(snapshot(views), finding(50)).state is State.UNKNOWN


def test_rendezvous_without_a_process_of_the_absent_rank_is_hung_after_a_minute() -> None:
    def found(at_s: float) -> Finding:
        return finding(at_s, (1,), kind=Kind.INCOMPLETE_RENDEZVOUS, waiting="0")

    def beats(at_s: float) -> list[model.RankView]:
        return [view(changed(beat(0, counter=0), groups=())), view(None, rank=1, age_s=at_s)]

    clock = Clockwork(beats, found).run(70)

    assert clock.first(State.SUSPECTED) == 10
    assert clock.first(State.HUNG) == 61


def test_server_that_just_started_calls_no_old_rendezvous_hung_before_it_has_looked() -> None:
    """The wait is five minutes old, but the absent rank's agent may only be about to reconnect."""

    def found(at_s: float) -> Finding:
        return finding(300 + at_s, (1,), kind=Kind.INCOMPLETE_RENDEZVOUS, waiting="0")

    def beats(at_s: float) -> list[model.RankView]:
        return [view(changed(beat(0, counter=0), groups=())), view(None, rank=1, age_s=at_s)]

    assert Clockwork(beats, found).run(70).first(State.HUNG) == 61


def test_rendezvous_with_a_frozen_absent_rank_is_hung_before_twenty_seconds() -> None:
    def found(at_s: float) -> Finding:
        return finding(at_s, (1,), kind=Kind.INCOMPLETE_RENDEZVOUS, waiting="0")

    def beats(at_s: float) -> list[model.RankView]:
        return [view(changed(beat(rank), groups=())) for rank in range(2)]

    clock = Clockwork(beats, found, frozen_stack(rank=1)).run(30)

    hung_s = clock.first(State.HUNG)
    assert hung_s is not None
    assert 15 <= hung_s <= 20


def test_rendezvous_that_waits_for_a_loading_rank_is_slow_not_hung() -> None:
    def found(at_s: float) -> Finding:
        return finding(at_s, (1,), kind=Kind.INCOMPLETE_RENDEZVOUS, waiting="0")

    def beats(at_s: float) -> list[model.RankView]:
        return [view(changed(beat(rank, process=facts(cpu=0.9)), groups=())) for rank in range(2)]

    clock = Clockwork(beats, found, frozen_stack(rank=1)).run_to(500)

    assert State.HUNG not in clock.states()
    assert clock.states()[-1] is State.SLOW


def test_busy_job_needs_no_diagnosis_and_a_quiet_one_does() -> None:
    memory = detect.Memory()

    assert not detect.needs_diagnosis(snapshot([view(beat(r)) for r in range(4)]), memory)
    assert detect.needs_diagnosis(snapshot([view(beat(0)), view(beat(1, 1.0))]), memory)
    assert detect.needs_diagnosis(snapshot([view(beat(0)), gone(1, code=0)]), memory)
    assert detect.needs_diagnosis(snapshot([view(beat(0), link=Link.LATE)]), memory)
    wait = wire.InitWait(what="init_process_group", age_s=0.5)
    assert detect.needs_diagnosis(snapshot([view(changed(beat(0), waits=(wait,)))]), memory)
