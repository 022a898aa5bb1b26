"""Frames are read one after the other, in the order in which they came, with rests in between.

A thousand agents may speak at once, and reading them all takes as long as a second. Whoever asks
for a page meanwhile would wait that long for each step of the answer; with a rest every few
milliseconds he waits about as long as with no agent at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

SLICE_S = 0.01


class Turns:
    """`async with` around what one frame costs; `clock_s` is monotonic."""

    def __init__(self, clock_s: Callable[[], float]) -> None:
        self._clock_s = clock_s
        self._lock = asyncio.Lock()  # fair: the first to wait is the first to go on
        self._rested_s = float("-inf")

    async def __aenter__(self) -> None:
        await self._lock.acquire()

    async def __aexit__(self, *_: object) -> None:
        try:
            if self._clock_s() - self._rested_s >= SLICE_S:
                await asyncio.sleep(0)  # everybody else's turn
                self._rested_s = self._clock_s()
        finally:
            self._lock.release()
