"""Geometry of the progress line and of the wait ring."""

from __future__ import annotations

import math

from hangwatch_server import model
from hangwatch_server.pages import drawing


def _point(ago_s: float, calls_per_s: float) -> model.TimelinePoint:
    return model.TimelinePoint(ago_s=ago_s, calls_per_s=calls_per_s, state=model.State.HEALTHY)


def _step(rank: int, target: int) -> model.PathStep:
    return model.PathStep(rank=rank, waits_in=f"recv from {target}", for_=(target,))


def test_one_point_is_no_line() -> None:
    assert drawing.line([_point(0, 1)]) is None


def test_the_line_runs_from_the_oldest_point_to_now() -> None:
    drawn = drawing.line([_point(100, 2), _point(0, 0)])

    assert drawn is not None
    assert drawn.path == "M0.0 4.0 L600.0 62.0"
    assert drawn.top == 2


def test_the_ring_has_a_dot_for_each_rank_on_one_circle() -> None:
    drawn = drawing.ring([_step(0, 1), _step(1, 2), _step(2, 0)])

    assert drawn is not None
    assert [dot.rank for dot in drawn.dots] == [0, 1, 2]
    centre = drawing.RING_CENTRE
    for dot in drawn.dots:
        assert math.isclose(math.hypot(dot.x - centre, dot.y - centre), drawing.RING_RADIUS)


def test_a_single_step_is_no_ring() -> None:
    assert drawing.ring([_step(0, 0)]) is None


def test_a_spark_runs_from_edge_to_edge_and_says_its_newest_rate() -> None:
    points = [
        model.TimelinePoint(ago_s=60.0 - 30 * index, calls_per_s=rate, state=model.State.HEALTHY)
        for index, rate in enumerate((4.0, 8.0, 2.0))
    ]

    line = drawing.spark(points)

    assert line is not None
    assert line.path == "M0.0 10.0 L48.0 1.5 L96.0 14.2"
    assert (line.newest, line.top) == (2.0, 8.0)
    assert drawing.spark(points[:1]) is None
