"""Counts what may be tried only so often: wrong credentials by address, captures by caller.

A right token is never refused for the wrong ones of somebody else behind the same proxy: there are
256 bits to guess, so what is limited is the noise and the work, not the guessing.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from hangwatch_server import metrics
from hangwatch_server.errors import TooManyError
from hangwatch_server.security import throttle
from hangwatch_server.security.throttle import Throttle


class Guard:
    """The limits of one server process."""

    def __init__(
        self,
        failures_per_minute: float,
        captures_per_minute: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._failures = Throttle(failures_per_minute)
        self._captures = Throttle(captures_per_minute)
        self._clock = clock

    def failed(self, address: str) -> None:
        """Note wrong credentials; raise TooManyError once an address has shown too many."""
        metrics.credentials_refused.inc()
        wait_s = self._failures.take(throttle.network(address), self._clock())
        if wait_s:
            raise TooManyError(
                f"too many wrong tokens came from {address}: try again in "
                f"{math.ceil(wait_s)} s with one that `hangwatch token create` made",
                wait_s,
            )

    def capture(self, caller: str) -> None:
        """Raise TooManyError for a caller who has asked for too many captures lately."""
        wait_s = self._captures.take(caller, self._clock())
        if wait_s:
            raise TooManyError(
                "you have asked for many captures in the last minute, and each one holds up every "
                f"rank that it asks for a moment: try again in {math.ceil(wait_s)} s",
                wait_s,
            )
