"""What the scripts of a job's page draw: the rank grid and the progress line, as JSON.

The page carries all of it; its stream then sends what the page has not got: looks that changed, and
new points of the line.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from hangwatch_server.model import TimelinePoint
from hangwatch_server.pages import runs
from hangwatch_server.pages.rank_grid import Grid, Looks, Places

_SLACK_S = 0.5  # points are one second apart; their ages are rounded


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """Points of the line, oldest first; the last columns are runs."""

    ago_s: list[float]
    calls_per_s: list[float]
    states: list[tuple[str, int]]
    phases: list[tuple[str, int]]
    attempts: list[tuple[int, int]]


class Data(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    looks: Looks | None = None
    places: Places | None = None
    progress: Progress | None = None


class Changes:
    """Of one open stream: what its page has not got yet, encoded; "" for nothing.

    `held` is the digest of the places that the page has.
    """

    def __init__(self, held: str = "") -> None:
        self.held = held
        self._looks: Looks | None = None
        self._newest_s: float | None = None  # of the points sent, on the server's clock

    def of(self, grid: Grid, points: Sequence[TimelinePoint], now_s: float) -> str:
        now_held = digest(grid)
        data = Data(
            looks=None if grid.looks == self._looks and now_held == self.held else grid.looks,
            places=None if now_held == self.held else grid.places,
            progress=self._fresh(points, now_s),
        )
        self._looks, self.held = grid.looks, now_held
        return "" if data == Data() else msgspec.json.encode(data).decode()

    def _fresh(self, points: Sequence[TimelinePoint], now_s: float) -> Progress | None:
        seen_s = self._newest_s
        fresh = [p for p in points if seen_s is None or now_s - p.ago_s > seen_s + _SLACK_S]
        if not fresh:
            return None
        self._newest_s = now_s - fresh[-1].ago_s
        return progress(fresh)


def whole(grid: Grid, points: Sequence[TimelinePoint]) -> str:
    """All of it, for the page itself."""
    data = Data(looks=grid.looks, places=grid.places, progress=progress(points) if points else None)
    return msgspec.json.encode(data).decode()


def digest(grid: Grid) -> str:
    """Tells one set of places from another."""
    return hashlib.sha256(msgspec.json.encode(grid.places)).hexdigest()[:16]


def progress(points: Sequence[TimelinePoint]) -> Progress:
    return Progress(
        ago_s=[point.ago_s for point in points],
        calls_per_s=[_short(point.calls_per_s) for point in points],
        states=runs.of([point.state.value for point in points]),
        phases=runs.of([point.phase for point in points]),
        attempts=runs.of([point.attempt for point in points]),
    )


def _short(rate: float) -> float:
    """Three digits are more than a line of 100 pixels can show."""
    return float(f"{rate:.3g}")
