"""The cycle of a deadlock drawn as a ring: ranks as dots, what each waits in on the arrow onwards.

Geometry and a text alternative; what waits for what is the verdict's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hangwatch_server.model import PathStep

MAX_DOTS = 12  # more would not be read; those in the middle fold into one
WIDTH, HEIGHT = 640.0, 400.0
CENTRE_X, CENTRE_Y, RADIUS = WIDTH / 2, HEIGHT / 2, 148.0
_GAP = 28.0  # around a dot, for the dot itself and the arrow's head
_LABEL_AWAY = 20.0
_LABEL_CHARS = 22
_BASELINE = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """A rank, or with `folded` above 0 so many ranks that are not drawn one by one."""

    rank: int
    folded: int
    x: float
    y: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Arc:
    """From one dot to the next, with the call that the rank waits in."""

    path: str
    label: str
    x: float
    y: float
    anchor: str  # start, middle or end


@dataclass(frozen=True, slots=True, kw_only=True)
class Ring:
    dots: tuple[Dot, ...]
    arcs: tuple[Arc, ...]
    text: str  # the whole cycle in words


def of_cycle(cycle: Sequence[PathStep]) -> Ring | None:
    """Clockwise from the top; None for what is no cycle."""
    if len(cycle) < 2:
        return None
    shown, folded = _fold(cycle)
    turn = math.tau / len(shown)
    angles = [turn * index - math.pi / 2 for index in range(len(shown))]
    dots = tuple(
        Dot(
            rank=step.rank,
            folded=folded if place == MAX_DOTS // 2 and folded else 0,
            x=_x(angle, RADIUS),
            y=_y(angle, RADIUS),
        )
        for place, (step, angle) in enumerate(zip(shown, angles, strict=True))
    )
    arcs = tuple(
        _arc("" if dot.folded else step.waits_in, angle, turn)
        for dot, step, angle in zip(dots, shown, angles, strict=True)
    )
    return Ring(dots=dots, arcs=arcs, text=_text(cycle))


def _fold(cycle: Sequence[PathStep]) -> tuple[list[PathStep], int]:
    """At most MAX_DOTS steps, one of which stands for the `folded` ones in the middle."""
    if len(cycle) <= MAX_DOTS:
        return list(cycle), 0
    middle = MAX_DOTS // 2
    folded = len(cycle) - MAX_DOTS + 1
    return [*cycle[: middle + 1], *cycle[middle + folded :]], folded


def _arc(call: str, angle: float, turn: float) -> Arc:
    gap = _GAP / RADIUS
    start, end = angle + gap, angle + turn - gap
    middle = (start + end) / 2
    cosine = math.cos(middle)
    return Arc(
        path=(
            f"M{_x(start, RADIUS):.1f} {_y(start, RADIUS):.1f} "
            f"A{RADIUS} {RADIUS} 0 {1 if end - start > math.pi else 0} 1 "
            f"{_x(end, RADIUS):.1f} {_y(end, RADIUS):.1f}"
        ),
        label=_short(call),
        x=_x(middle, RADIUS + _LABEL_AWAY),
        y=_y(middle, RADIUS + _LABEL_AWAY) + _BASELINE,
        anchor="middle" if abs(cosine) < 0.2 else ("start" if cosine > 0 else "end"),
    )


def _short(call: str) -> str:
    """The call with its number, which must not be what is cut off."""
    if len(call) <= _LABEL_CHARS:
        return call
    name, _, number = call.rpartition(" #")
    if not name or len(number) > 12:
        return call[: _LABEL_CHARS - 1] + "…"
    room = _LABEL_CHARS - len(number) - 3
    return f"{name[:room]}… #{number}"


def _text(cycle: Sequence[PathStep]) -> str:
    following = [*cycle[1:], cycle[0]]
    steps = (
        f"rank {step.rank} waits in {step.waits_in} for rank {after.rank}"
        for step, after in zip(cycle, following, strict=True)
    )
    return "; ".join(steps)


def _x(angle: float, radius: float) -> float:
    return CENTRE_X + radius * math.cos(angle)


def _y(angle: float, radius: float) -> float:
    return CENTRE_Y + radius * math.sin(angle)
