"""Which of several servers speaks for all about what all of them see: a lease in Postgres says.

Without it each would say that the database was away, and each would beat outside.
"""

from __future__ import annotations

from hangwatch_server import logs
from hangwatch_server.db import leases
from hangwatch_server.db.engine import Database
from hangwatch_server.db.leases import Lease
from hangwatch_server.errors import DatabaseError

NAME = "monitor"  # beside the leases of jobs, whose ids are hexadecimal

_log = logs.get()


class Speaker:
    """This server's claim to speak, renewed with each look."""

    def __init__(self, db: Database, server: str, ttl_s: float) -> None:
        self._db, self._server, self._ttl_s = db, server, ttl_s
        self._lease: Lease | None = None

    async def speaks(self, *, can: bool) -> bool:
        """Whether this server speaks until the next look; one that cannot leaves it to others.

        Raises DatabaseError where nobody can know.
        """
        if can:
            self._lease = await leases.claim(self._db, NAME, self._server, self._ttl_s)
        else:
            await self._release()
        return self._lease is not None

    async def stop(self) -> None:
        """Let another server speak at once; the time limit does it if this fails."""
        try:
            await self._release()
        except DatabaseError as error:
            _log.info("speaker_not_released", error=str(error))

    async def _release(self) -> None:
        lease, self._lease = self._lease, None
        if lease is not None:
            await leases.release(self._db, lease)
