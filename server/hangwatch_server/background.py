"""Tasks that run as long as the server: one that ends is begun anew, and is known to have ended."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine

from hangwatch_server import logs, metrics

RETRY_S = 5.0
# A task that ended counts as failing until it has run for so long again: one that fails at each
# beginning is failing all the time.
STEADY_S = 30.0

_log = logs.get()


class Background:
    """Starts tasks, keeps them going, and stops them in the order in which they were started."""

    def __init__(
        self, *, retry_s: float = RETRY_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._retry_s, self._clock = retry_s, clock
        self._tasks: list[asyncio.Task[None]] = []
        self._ended_s: dict[str, float] = {}

    def start(self, name: str, run: Callable[[], Coroutine[None, None, None]]) -> None:
        """Run an endless task until `stop`."""
        self._tasks.append(asyncio.create_task(self._lasting(name, run), name=name))

    def failing(self) -> tuple[str, ...]:
        """Names of the tasks that ended just now, or again and again."""
        now_s = self._clock()
        return tuple(
            sorted(name for name, ended_s in self._ended_s.items() if now_s - ended_s < STEADY_S)
        )

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _lasting(self, name: str, run: Callable[[], Coroutine[None, None, None]]) -> None:
        while True:
            try:
                await run()
                _log.error("task_ended", task=name, retry_s=self._retry_s)
            except Exception:
                # The boundary of a task: without it, a server that sees nothing would look healthy.
                _log.exception("task_failed", task=name, retry_s=self._retry_s)
            metrics.task_failures.labels(name).inc()
            self._ended_s[name] = self._clock()
            await asyncio.sleep(self._retry_s)
