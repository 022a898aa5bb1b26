"""Waiting on a condition with a deadline, in an event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from hangwatch_server.errors import NotFoundError

T = TypeVar("T")


async def until(
    get: Callable[[], Awaitable[T]], is_met: Callable[[T], bool], timeout_s: float = 120.0
) -> T:
    """The first value that meets the condition; a job that is not there yet is no failure."""
    end_s = time.monotonic() + timeout_s
    while True:
        found: T | None = None
        try:
            found = await get()
            if is_met(found):
                return found
        except NotFoundError:
            pass
        assert time.monotonic() < end_s, f"not met within {timeout_s} s: {found}"
        await asyncio.sleep(0.02)
