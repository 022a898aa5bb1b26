"""Measures of a thread or process over the last seconds, from counts that only grow."""

from __future__ import annotations

from collections import deque

from hangwatch_agent import procfs

SHARE_WINDOW_S = 3.0


class Share:
    """Share of a sliding window that a growing count of time takes, in units of `per_s`."""

    def __init__(self, per_s: float = procfs.TICKS_PER_S) -> None:
        self._per_s = per_s
        self._samples: deque[tuple[float, int]] = deque(maxlen=64)

    def add(self, now_s: float, count: int) -> float | None:
        """Record a sample; the share of the window, None before there are two."""
        self._samples.append((now_s, count))
        while len(self._samples) > 2 and self._samples[1][0] <= now_s - SHARE_WINDOW_S:
            self._samples.popleft()
        first_s, first = self._samples[0]
        if now_s <= first_s:
            return None
        return max(0.0, (count - first) / self._per_s / (now_s - first_s))


class Stillness:
    """Since when the kernel has not run a thread at all.

    Exact where a share of CPU time is not: a thread in a blocking wait is never run, one that
    polls or trains in small steps is.
    """

    def __init__(self) -> None:
        self._ran_ns: int | None = None
        self._since_s = 0.0

    def add(self, now_s: float, ran_ns: int, *, is_ready: bool) -> float:
        """For how long it has stood still, as far as this has been watched.

        `is_ready`: it would run if it were given a core, and so is not still.
        """
        if is_ready or ran_ns != self._ran_ns:
            self._ran_ns, self._since_s = ran_ns, now_s
        return now_s - self._since_s
