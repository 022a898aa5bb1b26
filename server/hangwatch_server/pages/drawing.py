"""Geometry of the small progress line in a row of a list, which is drawn on the server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hangwatch_server.model import TimelinePoint

WIDTH, HEIGHT = 96, 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Spark:
    """A progress line in a row of a list."""

    path: str
    area: str
    newest: float  # calls per second and rank over the last whole span
    top: float


def spark(points: Sequence[TimelinePoint]) -> Spark | None:
    """Progress over time, newest at the right edge; None with fewer than two points."""
    if len(points) < 2:
        return None
    top = max(max(point.calls_per_s for point in points), 0.1)
    step, reach = WIDTH / (len(points) - 1), HEIGHT - 3
    places = [
        (index * step, HEIGHT - 1.5 - reach * point.calls_per_s / top)
        for index, point in enumerate(points)
    ]
    path = "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    return Spark(
        path=path,
        area=f"{path} L{WIDTH} {HEIGHT} L0 {HEIGHT} Z",
        newest=points[-1].calls_per_s,
        top=top,
    )
