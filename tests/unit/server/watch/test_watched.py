"""When listeners are told of a job: at once of another verdict, seldom of moving numbers."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime

from tests.unit.server.board import beats

from hangwatch_server.model import State
from hangwatch_server.watch import verdicts
from hangwatch_server.watch.watched import TIMELINE_S, Point, Watched

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


def _mark(job: Watched, now_s: float, calls: int, state: State = State.HEALTHY) -> None:
    job.meta = dataclasses.replace(job.meta, calls=calls, reporting=2)
    job.verdict = dataclasses.replace(job.verdict, state=state)
    job.mark(now_s)


def test_the_timeline_tells_calls_of_each_rank_since_the_point_before() -> None:
    job = watched()

    for now_s, calls in ((1.0, 5000), (1.5, 5008), (2.0, 5016), (4.0, 5016)):
        _mark(job, now_s, calls)

    assert [(point.at_s, point.calls_per_s) for point in job.points] == [(2.0, 8.0), (4.0, 0.0)]


def test_the_timeline_is_half_an_hour_whatever_stood_before_it() -> None:
    job = watched()
    job.go_on([Point(float(at), 1.0, State.HEALTHY) for at in range(0, 1700, 10)])

    for now_s in range(1700, 3400):
        _mark(job, float(now_s), now_s)

    assert job.points[0].at_s == 1600.0 >= 3399.0 - TIMELINE_S


def test_the_line_of_a_job_ends_where_the_job_ended() -> None:
    job = watched()

    for now_s in range(10):
        _mark(job, float(now_s), 0, State.FINISHED if now_s > 5 else State.HEALTHY)

    assert [point.at_s for point in job.points] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
