"""How often agents speak: as the settings say, and less often while the server cannot keep up.

What is too much to read would wait in every connection's buffers, and all of it would be old. With
a longer interval what is read is of this moment, of all agents alike. Decides nothing about jobs.
"""

from __future__ import annotations

import asyncio

from hangwatch_agent import wire
from hangwatch_server import logs
from hangwatch_server.ingest.hub import Hub

LOOK_S = 3.0
LONG_WAIT_S = 0.7  # of a frame for its turn, where all of them together should take half a second
SHORT_WAIT_S = 0.15
CALM_LOOKS = 20  # this many with short waits before agents speak more often again
STEP = 1.5

_log = logs.get()


class Pace:
    """`longest_s` is well below the silence after which an agent counts as late."""

    def __init__(self, hub: Hub, shortest_s: float, longest_s: float) -> None:
        self._hub = hub
        self._shortest_s, self._longest_s = shortest_s, max(shortest_s, longest_s)
        self._calm_looks = 0

    async def run(self) -> None:
        """Look after the waits; runs as long as the server."""
        while True:
            await asyncio.sleep(LOOK_S)
            await self.look(self._hub.turns.longest_wait_s())

    async def look(self, wait_s: float) -> None:
        """Tell all agents of another interval if frames waited too long, or hardly at all."""
        before_s = self._hub.interval_s
        self._calm_looks = self._calm_looks + 1 if wait_s <= SHORT_WAIT_S else 0
        if wait_s >= LONG_WAIT_S:
            interval_s = min(self._longest_s, before_s * STEP)
        elif self._calm_looks >= CALM_LOOKS:
            interval_s = max(self._shortest_s, before_s / STEP)
            self._calm_looks = 0
        else:
            return
        if interval_s != before_s:
            _log.info("interval_changed", interval_s=round(interval_s, 2), waited_s=wait_s)
            self._hub.interval_s = interval_s
            await self._hub.send_all(wire.SetInterval(interval_s=interval_s))
