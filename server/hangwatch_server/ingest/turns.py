"""Frames are read in the order in which they came, with rests in between.

A thousand agents may speak at once, and reading them all takes as long as a second. Whoever asks
for a page meanwhile would wait that long for each step of the answer; with a rest every few
milliseconds he waits about as long as with no agent at all. Not one frame at a time: each turn of
the event loop gives Python's lock away, to a diagnosis in its thread for milliseconds.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TypeVar

SLICE_S = 0.02
T = TypeVar("T")


class Turns:
    """Does what one frame costs when it is its turn; `clock_s` is monotonic."""

    def __init__(self, clock_s: Callable[[], float]) -> None:
        self._clock_s = clock_s
        self._due: deque[tuple[float, Callable[[], None]]] = deque()
        self._is_begun = False
        self._longest_wait_s = 0.0

    def longest_wait_s(self) -> float:
        """Of any frame for its turn, since this was asked last."""
        found, self._longest_wait_s = self._longest_wait_s, 0.0
        return found

    async def take(self, work: Callable[[], T]) -> T:
        """What `work` returns or raises."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        self._due.append((self._clock_s(), lambda: _settle(done, work)))
        if not self._is_begun:
            self._is_begun = True
            loop.call_soon(self._slice, loop)
        return await done

    def _slice(self, loop: asyncio.AbstractEventLoop) -> None:
        now_s = self._clock_s()
        end_s = now_s + SLICE_S
        while self._due and now_s < end_s:
            came_s, settle = self._due.popleft()
            self._longest_wait_s = max(self._longest_wait_s, now_s - came_s)
            settle()
            now_s = self._clock_s()
        self._is_begun = bool(self._due)
        if self._is_begun:
            loop.call_soon(self._slice, loop)  # after everybody else's turn


def _settle(done: asyncio.Future[T], work: Callable[[], T]) -> None:
    if done.cancelled():
        return
    try:
        done.set_result(work())
    except Exception as error:
        # Whatever it is belongs to the connection that waits for it.
        done.set_exception(error)
