"""A server that has just started does not end an incident that it only does not see yet."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import cast

import pytest
from tests.unit.server.board import beats

from hangwatch_server.detect import Decision
from hangwatch_server.model import Incident, Limits, State
from hangwatch_server.watch import guard, verdicts
from hangwatch_server.watch.watched import Watched

LIMITS = Limits(suspect_after_s=10, confirm_after_s=15, why="floors")


class _Inherited:
    """The only thing that the guard reads of an incident."""

    attempt = 1


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
        inherited=cast("Incident", _Inherited()),
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
