"""That this server lives, for others to see, and whether the others do: each holds a lease.

A server that only lost its Redis still hears its agents; of one that is dead they are silent. Since
a lease is written every few seconds, it is also known here whether Postgres takes writes.
"""

from __future__ import annotations

import asyncio

from hangwatch_server import logs
from hangwatch_server.db import leases
from hangwatch_server.db.engine import Database
from hangwatch_server.db.leases import Lease
from hangwatch_server.errors import DatabaseError, NotWrittenError

_PREFIX = "replica "
FORGOTTEN_AFTER_S = 86_400.0
PATIENCE_S = 5.0  # with a database that does not answer
RENEWALS = 3  # in the time that a lease lasts
# What people read on every page: what is wrong, what it means, what to do.
_KEPT = (
    "Verdicts go on in memory and are stored as soon as it takes them; until then no alert is "
    "sent and no capture is kept."
)
_AWAY = f"The database cannot be reached. {_KEPT} Check that Postgres runs; the log says why."
_READ_ONLY = (
    f"The database takes no writes. {_KEPT} Check that its disk is not full and that it is no "
    "read-only standby; the log says why."
)
_log = logs.get()


class Presence:
    """This server's own lease, and a look at those of others."""

    def __init__(self, db: Database, replica: str, ttl_s: float) -> None:
        self._db, self._replica, self._ttl_s = db, replica, ttl_s
        self._lease: Lease | None = None
        self._missing = ""
        self._sure_since_s: float | None = None  # renewed without a failure since

    def missing(self) -> str:
        """What is wrong with the database, in words for people; "" while it takes writes."""
        return self._missing

    async def run(self) -> None:
        """Renew the lease for as long as the server runs; gives it back at the end."""
        renewing = asyncio.create_task(self._renew())
        try:
            while True:
                done, _ = await asyncio.wait({renewing}, timeout=PATIENCE_S)
                if not done:
                    self._note(_AWAY)  # it neither answers nor refuses: the query is not broken off
                    continue
                renewing.result()
                await asyncio.sleep(self._ttl_s / RENEWALS)
                renewing = asyncio.create_task(self._renew())
        finally:
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)
            await self._release()

    async def _renew(self) -> None:
        try:
            self._lease = await self._claim()
        except DatabaseError as error:
            self._note(_READ_ONLY if isinstance(error, NotWrittenError) else _AWAY)
            _log.info("presence_not_renewed", error=str(error))
        else:
            self._note("")

    def _note(self, missing: str) -> None:
        self._missing = missing
        if missing:
            self._sure_since_s = None
        elif self._sure_since_s is None:
            self._sure_since_s = asyncio.get_running_loop().time()

    async def living(self) -> frozenset[str]:
        """Names of all servers that live, this one among them."""
        found = await leases.held(self._db, _PREFIX)
        return frozenset(key.removeprefix(_PREFIX) for key in found) | {self._replica}

    async def is_alive(self, replica: str) -> bool:
        """Also where nobody knows: it is taken for dead only when its lease has run out.

        While it could not be renewed, neither could those of others.
        """
        since_s = self._sure_since_s
        if since_s is None or asyncio.get_running_loop().time() - since_s <= 2 * self._ttl_s:
            return True
        try:
            return bool(await leases.holder(self._db, _key(replica)))
        except DatabaseError:
            return True

    async def _claim(self) -> Lease | None:
        if self._lease is None:
            await leases.sweep(self._db, _PREFIX, FORGOTTEN_AFTER_S)  # of servers that were killed
        return await leases.claim(self._db, _key(self._replica), self._replica, self._ttl_s)

    async def _release(self) -> None:
        if self._lease is None:
            return
        try:
            await leases.drop(self._db, self._lease)
        except DatabaseError as error:
            _log.info("presence_not_released", error=str(error))


def _key(replica: str) -> str:
    """Beside those of jobs, whose ids are hexadecimal."""
    return _PREFIX + replica
