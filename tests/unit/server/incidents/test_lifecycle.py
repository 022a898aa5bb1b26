"""What happens to an incident as detection changes its mind, state by state."""

from __future__ import annotations

import dataclasses

import pytest
from tests.support import verdicts as make

from hangwatch_server.incidents import lifecycle
from hangwatch_server.incidents.lifecycle import Action, Known, Step
from hangwatch_server.model import Incident, IncidentState, Kind, State, Verdict

WHY = "because"


def incident(
    state: IncidentState = IncidentState.OPEN,
    *,
    was_confirmed: bool = False,
    attempt: int = 1,
    verdict: Verdict | None = None,
) -> Incident:
    held = verdict or make.verdict()
    is_shown = was_confirmed or state is IncidentState.CONFIRMED
    return Incident(
        id="i1",
        job=held.job,
        job_name=held.name,
        attempt=attempt,
        state=state,
        kind=held.kind,
        summary=held.summary,
        culprit_ranks=held.culprit_ranks,
        culprit_nodes=("node-b",),
        opened_at=make.SINCE,
        confirmed_at=make.SINCE if is_shown else None,
        ended_at=None,
        end_reason="",
        acknowledged_by="",
        acknowledged_at=None,
        snoozed_until=None,
        verdict=held,
    )


def taken(state: State, known: Known, verdict: Verdict | None = None) -> tuple[Step, ...]:
    return lifecycle.steps(state, WHY, verdict or make.verdict(), known)


def over(state: State, known: Known, verdict: Verdict | None = None) -> tuple[Step, ...]:
    return lifecycle.steps(state, WHY, verdict or make.verdict(), known, is_over=True)


def actions(state: State, known: Known, verdict: Verdict | None = None) -> list[Action]:
    return [step.action for step in taken(state, known, verdict)]


def end(state: IncidentState, why: str) -> tuple[Step, ...]:
    return (Step(action=Action.END, why=why, state=state),)


@pytest.mark.parametrize(
    "state",
    [
        State.STARTING,
        State.HEALTHY,
        State.EXPECTED_WAIT,
        State.SLOW,
        State.UNKNOWN,
        State.FINISHED,
    ],
)
def test_only_suspicion_hang_and_failure_open_an_incident(state: State) -> None:
    assert taken(state, Known()) == ()


def test_suspicion_opens_a_hidden_incident() -> None:
    assert taken(State.SUSPECTED, Known()) == (Step(action=Action.OPEN, why=WHY),)


def test_hard_evidence_opens_and_confirms_at_once() -> None:
    assert actions(State.HUNG, Known()) == [Action.OPEN, Action.CONFIRM]


def test_suspicion_that_becomes_a_hang_is_confirmed() -> None:
    assert actions(State.HUNG, Known(active=incident())) == [Action.CONFIRM]


@pytest.mark.parametrize("state", [State.SUSPECTED, State.HUNG])
def test_nothing_is_written_while_only_time_passes(state: State) -> None:
    later = dataclasses.replace(make.verdict(), stalled_s=99.0, summary="7 ranks have waited 99 s.")

    assert taken(state, Known(active=incident(IncidentState.CONFIRMED)), later) == ()


def test_changed_culprits_are_updated_with_a_line_for_people() -> None:
    (step,) = taken(
        State.HUNG, Known(active=incident(IncidentState.CONFIRMED)), make.verdict(culprits=(6,))
    )

    assert step == Step(action=Action.UPDATE, why="culprits: 5 -> 6")


def test_new_evidence_is_stored_without_a_line() -> None:
    better = dataclasses.replace(make.verdict(), hints=("another",))

    assert taken(State.SUSPECTED, Known(active=incident()), better) == (Step(action=Action.UPDATE),)


@pytest.mark.parametrize("state", [State.SLOW, State.EXPECTED_WAIT])
def test_suspicion_that_finds_work_is_pruned_but_a_confirmed_hang_stays(state: State) -> None:
    assert taken(state, Known(active=incident())) == end(IncidentState.PRUNED, WHY)
    assert taken(state, Known(active=incident(IncidentState.CONFIRMED))) == ()


def test_progress_prunes_a_suspicion_and_resolves_a_confirmed_hang() -> None:
    assert taken(State.HEALTHY, Known(active=incident())) == end(IncidentState.PRUNED, "progress")
    assert taken(State.HEALTHY, Known(active=incident(IncidentState.CONFIRMED))) == end(
        IncidentState.RESOLVED, "progress"
    )


@pytest.mark.parametrize("state", [State.UNKNOWN, State.STARTING])
@pytest.mark.parametrize("held", [IncidentState.OPEN, IncidentState.CONFIRMED])
def test_missing_data_ends_nothing(state: State, held: IncidentState) -> None:
    assert taken(state, Known(active=incident(held))) == ()


def test_health_seen_by_fewer_ranks_than_raised_it_ends_nothing() -> None:
    half = make.verdict(state=State.HEALTHY, reporting=4)

    assert taken(State.HEALTHY, Known(active=incident(IncidentState.CONFIRMED)), half) == ()


def test_finished_job_ends_a_confirmed_hang_and_prunes_a_suspicion() -> None:
    confirmed = Known(active=incident(IncidentState.CONFIRMED))

    assert taken(State.FINISHED, confirmed) == end(IncidentState.ENDED, "job finished")
    assert taken(State.FINISHED, Known(active=incident())) == end(
        IncidentState.PRUNED, "job finished"
    )


def test_failure_with_others_waiting_is_hidden_until_no_restart_came() -> None:
    failed = make.verdict(state=State.FAILED)
    hidden = Known(active=incident())

    assert actions(State.FAILED, Known(), failed) == [Action.OPEN]
    assert actions(State.FAILED, hidden, failed) == []
    assert over(State.FAILED, hidden) == (
        Step(action=Action.CONFIRM, why=WHY),
        Step(action=Action.END, why="job failed", state=IncidentState.ENDED),
    )


def test_failure_behind_a_suspicion_says_who_died() -> None:
    (step,) = taken(State.FAILED, Known(active=incident()), make.verdict(culprits=(6,)))

    assert step.action is Action.UPDATE


def test_failure_that_left_nobody_waiting_is_recorded_once() -> None:
    alone = make.verdict(state=State.FAILED, kind=Kind.NONE, waiting="")

    assert actions(State.FAILED, Known(), alone) == [Action.RECORD]
    assert actions(State.FAILED, Known(newest=incident(IncidentState.ENDED)), alone) == []
    assert actions(State.FAILED, Known(newest=incident(IncidentState.RESOLVED)), alone) == [
        Action.RECORD
    ]


def test_failed_job_ends_the_hang_once_no_restart_came() -> None:
    """Its verdict is kept: it explains the failure. Until then a restart may end it."""
    alone = make.verdict(state=State.FAILED, kind=Kind.NONE, waiting="")
    hang, suspicion = Known(active=incident(IncidentState.CONFIRMED)), Known(active=incident())

    assert taken(State.FAILED, hang) == ()
    assert taken(State.FAILED, suspicion, alone) == ()
    for known in (hang, suspicion):
        assert over(State.FAILED, known, alone) == end(IncidentState.ENDED, "job failed")


def test_hung_job_that_its_user_killed_ends_the_incident() -> None:
    """Nobody knows why its processes are gone, but nobody waits any more."""
    assert taken(State.UNKNOWN, Known(active=incident(IncidentState.CONFIRMED))) == ()
    assert over(State.UNKNOWN, Known(active=incident(IncidentState.CONFIRMED))) == end(
        IncidentState.ENDED, "job ended"
    )
    assert over(State.UNKNOWN, Known(active=incident())) == end(IncidentState.PRUNED, "job ended")
    assert over(State.UNKNOWN, Known()) == ()


def test_same_stall_reopens_the_recent_incident() -> None:
    recent = incident(IncidentState.RESOLVED, was_confirmed=True)
    next_call = dataclasses.replace(make.verdict(), seq=30)

    assert actions(State.SUSPECTED, Known(recent=recent), next_call) == [Action.REOPEN]
    assert actions(State.HUNG, Known(recent=recent), next_call) == [
        Action.REOPEN,
        Action.CONFIRM,
    ]


def test_other_stall_opens_an_incident_of_its_own() -> None:
    recent = incident(IncidentState.RESOLVED, was_confirmed=True)

    for other in (make.verdict(culprits=(6,)), make.verdict(kind=Kind.MISMATCH)):
        assert actions(State.SUSPECTED, Known(recent=recent), other) == [Action.OPEN]


def test_reopened_incident_that_clears_again_is_resolved_never_hidden() -> None:
    reopened = incident(IncidentState.OPEN, was_confirmed=True)

    assert taken(State.HEALTHY, Known(active=reopened)) == end(IncidentState.RESOLVED, "progress")
    assert taken(State.SLOW, Known(active=reopened)) == end(IncidentState.RESOLVED, WHY)


def test_restart_leaves_behind_the_incidents_of_earlier_attempts() -> None:
    old, own = incident(attempt=1), incident(attempt=2)

    assert lifecycle.left_behind([old, own], attempt=2) == (old,)
