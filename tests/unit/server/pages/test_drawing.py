"""Geometry of the progress line."""

from __future__ import annotations

from hangwatch_server import model
from hangwatch_server.pages import drawing


def _point(ago_s: float, calls_per_s: float) -> model.TimelinePoint:
    return model.TimelinePoint(ago_s=ago_s, calls_per_s=calls_per_s, state=model.State.HEALTHY)


def test_one_point_is_no_line() -> None:
    assert drawing.line([_point(0, 1)]) is None


def test_the_line_runs_from_the_oldest_point_to_now() -> None:
    drawn = drawing.line([_point(100, 2), _point(0, 0)])

    assert drawn is not None
    assert drawn.path == "M0.0 4.0 L600.0 62.0"
    assert drawn.top == 2


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
