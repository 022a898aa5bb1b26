"""Waiting on a condition with a deadline, for tests that watch real processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
POLL_S = 0.2


def until(condition: Callable[[], T | None], deadline_s: float, what: str) -> T:
    """Return the first true value of `condition`; fail with `what` after `deadline_s` seconds."""
    end_s = time.monotonic() + deadline_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end_s:
            raise AssertionError(f"not within {deadline_s:.0f} s: {what}")
        time.sleep(POLL_S)
