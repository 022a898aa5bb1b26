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

    def missing(self) -> str:
        """What is wrong with the database, in words for people; "" while it takes writes."""
        return self._missing

    async def run(self) -> None:
        """Renew the lease for as long as the server runs; gives it back at the end."""
        try:
            while True:
                try:
                    self._lease = await self._claim()
                    self._missing = ""
                except DatabaseError as error:
                    self._missing = _READ_ONLY if isinstance(error, NotWrittenError) else _AWAY
                    _log.info("presence_not_renewed", error=str(error))
                await asyncio.sleep(self._ttl_s / RENEWALS)
        finally:
            await self._release()

    async def living(self) -> frozenset[str]:
        """Names of all servers that live, this one among them."""
        found = await leases.held(self._db, _PREFIX)
        return frozenset(key.removeprefix(_PREFIX) for key in found) | {self._replica}

    async def is_alive(self, replica: str) -> bool:
        """Also where nobody knows: it is taken for dead only when its lease has run out."""
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
