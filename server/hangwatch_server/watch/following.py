"""What the owners of other jobs' detection have stored: this server shows it, and writes nothing.

It judges those jobs as well, so that it is warm when a lease falls to it; what it alone believes is
shown as far as it says the same as what is stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from hangwatch_server import logs, metrics
from hangwatch_server.bus import Bus, Subscription
from hangwatch_server.captures.service import Captures
from hangwatch_server.db import jobs as job_rows
from hangwatch_server.db.engine import Database
from hangwatch_server.errors import DatabaseError
from hangwatch_server.model import Verdict

# Bounds how old a verdict may be whose event was lost.
LOOK_EVERY_S = 1.0
_log = logs.get()


class Following:
    """The newest stored verdict of each job that another server owns."""

    def __init__(self, db: Database, bus: Bus, captures: Captures) -> None:
        self._db, self._bus, self._captures = db, bus, captures
        self._verdicts: dict[str, Verdict | None] = {}
        self._indexes: dict[str, int] = {}

    def follow(self, job: str) -> None:
        self._verdicts.setdefault(job, None)

    def leave(self, job: str) -> None:
        self._verdicts.pop(job, None)
        self._indexes.pop(job, None)

    def verdict(self, job: str) -> Verdict | None:
        """None while nothing is stored, or has been read."""
        return self._verdicts.get(job)

    async def run(self, tell: Callable[[str], None]) -> None:
        """Look whenever a verdict changed anywhere, and each second; `tell` of each job's new one.

        An event of another server comes before its verdict has been read here, so that whoever
        waits for the verdict is woken by what `tell` publishes.
        """
        with self._bus.subscribe(("jobs",)) as changes:
            while True:
                await _change(changes)
                try:
                    for job in await self.look():
                        tell(job)
                except DatabaseError as error:
                    metrics.database_failures.inc()
                    _log.info("verdicts_not_read", error=str(error))
                    await asyncio.sleep(LOOK_EVERY_S)

    async def look(self) -> list[str]:
        """Read what changed of the jobs that are followed, and return these."""
        if not self._verdicts:
            return []
        indexes = await job_rows.verdict_indexes(self._db, tuple(self._verdicts))
        changed = [job for job, index in indexes.items() if self._indexes.get(job) != index]
        read = [
            verdict
            for verdict in await job_rows.verdicts_of(self._db, changed)
            if verdict.job in self._verdicts
        ]
        for verdict in read:
            self._verdicts[verdict.job] = verdict
            self._indexes[verdict.job] = verdict.index
        for incident in {found.incident for found in self._verdicts.values() if found}:
            if incident is not None and not self._captures.has_evidence(incident):
                await self._captures.learn_evidence(incident)
        return [verdict.job for verdict in read]


async def _change(changes: Subscription) -> None:
    """Until a verdict changes, or it is time to look anyway."""
    try:
        async with asyncio.timeout(LOOK_EVERY_S):
            await anext(changes)
            changes.skip()
    except TimeoutError:
        return
    except StopAsyncIteration:
        await asyncio.sleep(LOOK_EVERY_S)  # the server is about to stop, and its bus has stopped
