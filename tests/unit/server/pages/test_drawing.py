"""Geometry of the progress line."""

from __future__ import annotations

from hangwatch_server import model
from hangwatch_server.pages import drawing


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
