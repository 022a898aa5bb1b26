"""The progress of a job in few points: what a list of jobs draws."""

from __future__ import annotations

from hangwatch_server.model import State
from hangwatch_server.watch import rows
from hangwatch_server.watch.watched import Point


def _points(last_s: int, calls_per_s: int = 8, reporting: int = 2) -> list[Point]:
    return [
        Point(float(at), at * calls_per_s, reporting, State.HEALTHY) for at in range(last_s + 1)
    ]


def test_half_an_hour_is_told_in_spans_of_thirty_seconds() -> None:
    told = rows.pace(_points(1800), 1800.0)

    assert len(told) == 60
    assert {point.calls_per_s for point in told} == {4.0}


def test_a_young_job_is_told_in_shorter_spans() -> None:
    assert len(rows.pace(_points(60), 60.0)) == 12


def test_a_line_stands_still_until_the_next_span_is_over() -> None:
    before = [point.calls_per_s for point in rows.pace(_points(610), 610.0)]
    stalled = [*_points(610), *(Point(610.0 + s, 4880, 2, State.HEALTHY) for s in range(1, 19))]

    assert [point.calls_per_s for point in rows.pace(stalled, 628.0)] == before


def test_a_job_without_points_has_no_pace() -> None:
    assert rows.pace([], 10.0) == ()
