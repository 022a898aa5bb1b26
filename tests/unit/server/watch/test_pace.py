"""The progress of a job in few points: what a list of jobs draws."""

from __future__ import annotations

import dataclasses

from hangwatch_server.model import State
from hangwatch_server.watch import rows
from hangwatch_server.watch.watched import Point


def _points(last_s: int, calls_per_s: float = 4.0) -> list[Point]:
    return [Point(float(at), calls_per_s, State.HEALTHY) for at in range(1, last_s + 1)]


def test_half_an_hour_is_told_in_spans_of_thirty_seconds() -> None:
    told = rows.pace(_points(1800), 1800.0)

    assert len(told) == 60
    assert {point.calls_per_s for point in told} == {4.0}


def test_a_young_job_is_told_in_shorter_spans() -> None:
    assert len(rows.pace(_points(60), 60.0)) == 12


def test_a_line_stands_still_until_the_next_span_is_over() -> None:
    before = [point.calls_per_s for point in rows.pace(_points(610), 610.0)]
    stalled = [*_points(610), *(Point(610.0 + s, 0.0, State.HEALTHY) for s in range(1, 19))]

    assert [point.calls_per_s for point in rows.pace(stalled, 628.0)] == before


def test_a_job_without_points_has_no_pace() -> None:
    assert rows.pace([], 10.0) == ()


def test_what_is_stored_keeps_each_change_of_state_where_it_was() -> None:
    stalled = [Point(1800.0 + at, 0.0, State.SUSPECTED) for at in range(1, 6)]
    hung = [Point(1805.0 + at, 0.0, State.HUNG) for at in range(1, 6)]

    kept = rows.thinned([*_points(1800), *stalled, *hung])

    assert len(kept) == 182
    assert [(point.at_s, point.state) for point in kept[-3:]] == [
        (1800.0, State.HEALTHY),
        (1805.0, State.SUSPECTED),
        (1810.0, State.HUNG),
    ]
    assert kept[0] == Point(10.0, 4.0, State.HEALTHY)


def test_what_is_stored_goes_on_at_the_ages_that_it_has_when_it_is_read() -> None:
    told = rows.timeline(_points(60), 60.0)
    older = [dataclasses.replace(point, ago_s=point.ago_s + 1765) for point in told]

    again = rows.restored(older, 5000.0)

    assert [point.at_s for point in (again[0], again[-1])] == [3201.0, 3235.0]
