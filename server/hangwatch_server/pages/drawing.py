"""Geometry of the two pictures drawn on the server: the progress line and the wait ring."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hangwatch_server.model import PathStep, TimelinePoint

WIDTH, HEIGHT = 600.0, 64.0
SPARK_WIDTH, SPARK_HEIGHT = 96, 20
WINDOW_S = 1800.0  # the timeline covers the last half hour
RING_CENTRE, RING_RADIUS = 180.0, 112.0
RING_DOT = 20.0


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    rank: int
    x: float
    y: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Arc:
    """From one dot to the next, with the call that the rank waits in."""

    path: str
    label: str
    label_x: float
    label_y: float
    anchor: str  # start, middle or end


@dataclass(frozen=True, slots=True, kw_only=True)
class Ring:
    dots: tuple[Dot, ...]
    arcs: tuple[Arc, ...]


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


def ring(cycle: Sequence[PathStep]) -> Ring | None:
    """Ranks on a circle, clockwise from the top, each with an arrow to the one it waits for."""
    if len(cycle) < 2:
        return None
    angles = [math.tau * index / len(cycle) - math.pi / 2 for index in range(len(cycle))]
    dots = tuple(
        Dot(rank=step.rank, x=_x(angle, RING_RADIUS), y=_y(angle, RING_RADIUS))
        for step, angle in zip(cycle, angles, strict=True)
    )
    step_angle = math.tau / len(cycle)
    arcs = tuple(
        _arc(step.waits_in, angle, step_angle) for step, angle in zip(cycle, angles, strict=True)
    )
    return Ring(dots=dots, arcs=arcs)


def _arc(label: str, angle: float, step_angle: float) -> Arc:
    gap = (RING_DOT + 8) / RING_RADIUS  # leave room for the dot and the arrow's head
    start, end = angle + gap, angle + step_angle - gap
    middle = (start + end) / 2
    large = 1 if end - start > math.pi else 0
    cosine = math.cos(middle)
    return Arc(
        path=(
            f"M{_x(start, RING_RADIUS):.1f} {_y(start, RING_RADIUS):.1f} "
            f"A{RING_RADIUS} {RING_RADIUS} 0 {large} 1 "
            f"{_x(end, RING_RADIUS):.1f} {_y(end, RING_RADIUS):.1f}"
        ),
        label=label,
        label_x=_x(middle, RING_RADIUS + 14),
        label_y=_y(middle, RING_RADIUS + 14) + 4,
        anchor="middle" if abs(cosine) < 0.2 else ("start" if cosine > 0 else "end"),
    )


def _x(angle: float, radius: float) -> float:
    return RING_CENTRE + radius * math.cos(angle)


def _y(angle: float, radius: float) -> float:
    return RING_CENTRE + radius * math.sin(angle)
