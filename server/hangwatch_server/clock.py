"""Where the server gets its time from, passed in so that tests can move it.

Ages and limits use `monotonic_s`; `now` is only for what people read. Neither is ever compared with
a clock of another machine.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def monotonic_s(self) -> float:
        """Seconds since an arbitrary start; never goes back."""
        ...

    def now(self) -> datetime:
        """The wall time, aware and in UTC."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def monotonic_s(self) -> float:
        return time.monotonic()

    def now(self) -> datetime:
        return datetime.now(UTC)
