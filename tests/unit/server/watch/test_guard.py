"""A server that has just started does not end an incident that it only does not see yet."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest
from tests.unit.server.board import beats

from hangwatch_server.detect import Decision, Memory
from hangwatch_server.detect.memory import Stall
from hangwatch_server.model import Finding, Incident, Kind, Limits, State, Verdict
from hangwatch_server.watch import guard, verdicts
from hangwatch_server.watch.watched import Watched

LIMITS = Limits(suspect_after_s=10, confirm_after_s=15, why="floors")


class _Inherited:
    """What the guard reads of an incident."""

    def __init__(self, verdict: Verdict, confirmed_at: datetime | None = None) -> None:
        self.attempt, self.verdict, self.confirmed_at = 1, verdict, confirmed_at


def watched(ranks: int = 4) -> Watched:
    board = beats.board_with("a")
    board.apply("a", beats.heartbeat([beats.rank(rank) for rank in range(ranks)]), 1.0)
    meta, snapshot = board.job_meta(beats.JOB, 1.0), board.snapshot(beats.JOB, 1.0)
    assert meta is not None
    assert snapshot is not None
    now = datetime.now(UTC)
    verdict = verdicts.first(meta, now)
    return Watched(
        id=beats.JOB,
        first_seen=now,
        last_seen=now,
        meta=meta,
        snapshot=snapshot,
        verdict=verdict,
        draft=verdict,
        inherited=cast("Incident", _Inherited(verdict)),
    )


def decision(state: State) -> Decision:
    return Decision(state=state, stalled_s=0.0, limits=LIMITS)


@pytest.mark.parametrize("state", [State.HEALTHY, State.STARTING, State.FINISHED, State.SLOW])
def test_calm_decision_with_ranks_missing_stays_unknown(state: State) -> None:
    job = watched(ranks=2)

    states = [guard.apply(job, decision(state), now_s).state for now_s in (1.0, 60.0)]

    assert states == [State.UNKNOWN, State.UNKNOWN]


def test_full_and_healthy_for_some_seconds_is_believed() -> None:
    job = watched()

    states = [guard.apply(job, decision(State.HEALTHY), now_s).state for now_s in (1.0, 3.0, 6.0)]

    assert states == [State.UNKNOWN, State.UNKNOWN, State.HEALTHY]
    assert job.inherited is None


def test_hang_that_is_seen_again_is_taken_at_once() -> None:
    job = watched(ranks=2)

    assert guard.apply(job, decision(State.SUSPECTED), 1.0).state is State.SUSPECTED
    assert guard.apply(job, decision(State.HEALTHY), 2.0).state is State.HEALTHY


@pytest.mark.parametrize(
    ("stalled_s", "state"),
    [(60.0, State.HUNG), (10.0, State.SUSPECTED)],
    ids=["since before", "only since"],
)
def test_hang_that_another_server_has_confirmed_is_hung_if_nobody_has_moved_since(
    stalled_s: float, state: State
) -> None:
    job = watched()
    job.memory = Memory(stall=Stall(origin_s=0.0))
    confirmed_at = job.last_seen - timedelta(seconds=30)
    job.inherited = cast("Incident", _Inherited(job.verdict, confirmed_at))
    suspected = dataclasses.replace(decision(State.SUSPECTED), stalled_s=stalled_s)

    found = guard.apply(job, suspected, 1.0)

    assert found.state is state
    assert job.memory.stall is not None
    assert job.memory.stall.is_hung is (state is State.HUNG)


def test_hang_that_was_confirmed_waits_for_all_ranks_before_it_is_taken_for_another() -> None:
    job = watched(ranks=2)
    job.memory = Memory(stall=Stall(origin_s=0.0))
    known = dataclasses.replace(job.verdict, kind=Kind.MISSING_RANKS, culprit_ranks="3")
    job.inherited = cast("Incident", _Inherited(known, job.last_seen - timedelta(seconds=30)))
    suspected = dataclasses.replace(decision(State.SUSPECTED), stalled_s=60.0)

    job.finding = Finding(kind=Kind.MISSING_RANKS, culprit_ranks="2-3")
    half = guard.apply(job, suspected, 1.0)
    calm = guard.apply(job, decision(State.HEALTHY), 1.5)
    job.finding = Finding(kind=Kind.MISSING_RANKS, culprit_ranks="3")
    whole = guard.apply(job, suspected, 2.0)

    assert [half.state, calm.state, whole.state] == [State.UNKNOWN, State.UNKNOWN, State.HUNG]


def test_another_hang_of_ranks_that_are_all_seen_is_proven_anew() -> None:
    job = watched()
    known = dataclasses.replace(job.verdict, kind=Kind.MISSING_RANKS, culprit_ranks="3")
    job.inherited = cast("Incident", _Inherited(known, job.last_seen - timedelta(seconds=30)))
    job.finding = Finding(kind=Kind.MISSING_RANKS, culprit_ranks="2")
    suspected = dataclasses.replace(decision(State.SUSPECTED), stalled_s=60.0)

    assert guard.apply(job, suspected, 1.0).state is State.SUSPECTED
    assert job.inherited is None
