"""Geometry of the progress line, which is drawn on the server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hangwatch_server.model import TimelinePoint

WIDTH, HEIGHT = 600.0, 64.0
SPARK_WIDTH, SPARK_HEIGHT = 96, 20
WINDOW_S = 1800.0  # the timeline covers the last half hour


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The progress line as an SVG path, the area under it, and what its ends mean."""

    path: str
    area: str
    top: float  # calls per second and rank at the upper edge
    span_s: float  # from the left edge to now


@dataclass(frozen=True, slots=True, kw_only=True)
class Spark:
    """A progress line in a row of a list."""

    path: str
    area: str
    newest: float  # calls per second and rank over the last whole span
    top: float


def line(points: Sequence[TimelinePoint]) -> Line | None:
    """Progress over time, newest at the right edge; None with fewer than two points."""
    ordered = sorted(points, key=lambda point: -point.ago_s)
    if len(ordered) < 2:
        return None
    span_s = min(WINDOW_S, max(ordered[0].ago_s, 1.0))
    top = max(max(point.calls_per_s for point in ordered), 0.1)
    places = [
        (
            WIDTH * (1 - min(point.ago_s, span_s) / span_s),
            HEIGHT - 2 - (HEIGHT - 6) * point.calls_per_s / top,
        )
        for point in ordered
    ]
    path = "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    area = f"{path} L{places[-1][0]:.1f} {HEIGHT} L{places[0][0]:.1f} {HEIGHT} Z"
    return Line(path=path, area=area, top=top, span_s=span_s)


def spark(points: Sequence[TimelinePoint]) -> Spark | None:
    """The same, small, for a row of a list; None with fewer than two points."""
    if len(points) < 2:
        return None
    top = max(max(point.calls_per_s for point in points), 0.1)
    step, reach = SPARK_WIDTH / (len(points) - 1), SPARK_HEIGHT - 3
    places = [
        (index * step, SPARK_HEIGHT - 1.5 - reach * point.calls_per_s / top)
        for index, point in enumerate(points)
    ]
    path = "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    return Spark(
        path=path,
        area=f"{path} L{SPARK_WIDTH} {SPARK_HEIGHT} L0 {SPARK_HEIGHT} Z",
        newest=points[-1].calls_per_s,
        top=top,
    )
