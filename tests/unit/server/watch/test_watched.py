"""When listeners are told of a job: at once of another verdict, seldom of moving numbers."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime

from tests.unit.server.board import beats

from hangwatch_server.model import State
from hangwatch_server.watch import verdicts
from hangwatch_server.watch.watched import Watched

NOW = datetime(2026, 11, 20, 18, 0, tzinfo=UTC)


def watched() -> Watched:
    board = beats.board_with("a")
    board.apply("a", beats.heartbeat([beats.rank(0)]), 1.0)
    meta, snapshot = board.job_meta(beats.JOB, 1.0), board.snapshot(beats.JOB, 1.0)
    assert meta is not None
    assert snapshot is not None
    verdict = verdicts.first(meta, NOW)
    return Watched(
        id=beats.JOB,
        first_seen=NOW,
        last_seen=NOW,
        meta=meta,
        snapshot=snapshot,
        verdict=verdict,
        draft=verdict,
    )


def test_job_in_which_nothing_changes_is_told_once() -> None:
    job = watched()

    assert [job.is_news(now_s) for now_s in (1.0, 1.5, 60.0)] == [True, False, False]


def test_moving_counters_are_told_once_a_second() -> None:
    job = watched()
    told = []
    for tick in range(5):
        job.meta = dataclasses.replace(job.meta, calls=tick)
        told.append(job.is_news(tick / 2))

    assert told == [True, False, True, False, True]


def test_another_verdict_is_told_at_once() -> None:
    job = watched()
    job.is_news(1.0)
    job.verdict = dataclasses.replace(job.verdict, state=State.HUNG)

    assert job.is_news(1.1)
