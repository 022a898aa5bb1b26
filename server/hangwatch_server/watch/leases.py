"""Which jobs this process may decide about: one lease per job, renewed while the job is here."""

from __future__ import annotations

import asyncio

from hangwatch_server import logs
from hangwatch_server.db import leases
from hangwatch_server.db.engine import Database
from hangwatch_server.db.leases import Lease
from hangwatch_server.errors import DatabaseError

HAND_OVER_S = 3.0
_log = logs.get()


class Leases:
    """Claims and renews; the fencing token in each lease is checked by every write."""

    def __init__(self, db: Database, holder: str, ttl_s: float) -> None:
        self._db, self._holder, self._ttl_s = db, holder, ttl_s
        self._held: dict[str, tuple[Lease, float]] = {}
        self._refused: dict[str, float] = {}
        self._is_given_up = False
        self._giving_up: asyncio.Task[None] | None = None

    async def hold(self, job: str, now_s: float) -> Lease | None:
        """The lease of a job, renewed when it is due; None while another process has it."""
        if self._is_given_up:
            return None
        held = self._held.get(job)
        if held is not None:
            lease, due_s = held
            if now_s < due_s or await leases.renew(self._db, lease, self._ttl_s):
                self._held[job] = (lease, due_s if now_s < due_s else self._due_s(now_s))
                return lease
            self.lose(job)
        if now_s < self._refused.get(job, 0.0):
            return None
        return await self._claim(job, now_s)

    async def borrow(self, job: str) -> Lease | None:
        """A lease for one write about a job that is not watched here; it runs out by itself."""
        if job in self._held:
            return None
        return await leases.claim(self._db, job, self._holder, self._ttl_s)

    async def is_elsewhere(self, job: str) -> bool:
        """Whether another process holds the lease of this job now."""
        return job not in self._held and await leases.holder(self._db, job) != ""

    def lose(self, job: str) -> None:
        """Forget a lease that another process has taken over."""
        if self._held.pop(job, None) is not None:
            _log.warning("lease_lost", job=job)

    async def release(self, job: str) -> None:
        held = self._held.pop(job, None)
        if held is not None:
            await leases.release(self._db, held[0])

    async def give_up(self) -> None:
        """Hand all jobs over now, and own none from now on: this server is about to stop.

        A database that does not answer is not waited for: the leases then run out.
        """
        self._is_given_up = True
        self._giving_up = asyncio.create_task(self.release_all())
        await asyncio.wait({self._giving_up}, timeout=HAND_OVER_S)

    async def release_all(self) -> None:
        """Let another process take over at once; the time limit does it if this fails."""
        for job in list(self._held):
            try:
                await self.release(job)
            except DatabaseError as error:
                _log.info("lease_not_released", job=job, error=str(error))
                return

    async def _claim(self, job: str, now_s: float) -> Lease | None:
        lease = await leases.claim(self._db, job, self._holder, self._ttl_s)
        if lease is None:
            self._refused[job] = now_s + self._ttl_s / 6
            return None
        self._refused.pop(job, None)
        if self._is_given_up:  # meanwhile
            await leases.release(self._db, lease)
            return None
        self._held[job] = (lease, self._due_s(now_s))
        return lease

    def _due_s(self, now_s: float) -> float:
        return now_s + self._ttl_s / 3
