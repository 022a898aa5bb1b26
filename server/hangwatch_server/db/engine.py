"""The connection pool of one Postgres, and clear words when it cannot be used. Asks nothing itself.

Any Postgres does: the embedded one or a stock server by URL. One dialect, one driver (psycopg 3).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator

from sqlalchemy import URL, make_url, text
from sqlalchemy.exc import ArgumentError, InterfaceError, InternalError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from hangwatch_server.db import codec
from hangwatch_server.errors import DatabaseError, NotWrittenError

DRIVER = "postgresql+psycopg"
CONNECT_ARGS = {
    "connect_timeout": 10,
    # Of a host that is gone without a word; over a unix socket they mean nothing.
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,  # ms
    # A statement that hangs must not hold the server for ever; every query here is far below this.
    "options": "-c statement_timeout=30s -c idle_in_transaction_session_timeout=60s"
    " -c timezone=UTC",
}
# SQLSTATE of what Postgres answers when it will not write: a standby or a read-only setting, and a
# full disk (https://www.postgresql.org/docs/current/errcodes-appendix.html).
READ_ONLY, DISK_FULL = "25006", "53100"
_INVALID_TRANSACTION = "25"  # class of READ_ONLY and of a transaction ended for being idle
# Longer than any statement may take: what has not ended by then is not answered at all.
PATIENCE_S = 40.0
# What runs at a stop takes milliseconds; who stops a server kills it after some ten seconds.
CLOSE_WAIT_S = 5.0


class Database:
    """One Postgres; `begin()` gives a connection inside a transaction."""

    def __init__(self, url: str) -> None:
        self.url = parse(url)
        self._engine: AsyncEngine | None = None
        self._running = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def engine(self) -> AsyncEngine:
        if self._engine is None:
            raise DatabaseError(
                "the database was used before it was opened, or after it was closed"
            )
        return self._engine

    async def open(self) -> None:
        """Make the pool and check that the database answers; raise DatabaseError if not."""
        self._engine = create_async_engine(
            self.url,
            pool_size=10,
            max_overflow=10,
            pool_timeout=15,
            pool_pre_ping=True,  # a restarted Postgres costs a reconnect, not an error
            json_serializer=codec.dumps,
            json_deserializer=codec.loads,
            connect_args=CONNECT_ARGS,
        )
        try:
            await self.ping()
        except DatabaseError:
            await self.close()
            raise

    async def close(self) -> None:
        """Refuse new transactions, let those that run end (up to CLOSE_WAIT_S), drop the pool."""
        engine, self._engine = self._engine, None
        if engine is None:
            return
        # A connection that comes back to a pool already dropped would stay open, owned by nobody.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), CLOSE_WAIT_S)
        await engine.dispose()

    async def ping(self) -> None:
        """Raise DatabaseError unless the database answers."""
        async with self.begin() as connection:
            await connection.execute(text("SELECT 1"))

    @contextlib.asynccontextmanager
    async def begin(self) -> AsyncIterator[AsyncConnection]:
        """One transaction: committed at the end of the block, rolled back if it raises."""
        try:
            with self._counted():
                async with asyncio.timeout(PATIENCE_S), self.engine.begin() as connection:
                    yield connection
        except (OperationalError, InterfaceError, PoolTimeoutError) as error:
            raise unusable(self.url, error) from error
        except TimeoutError as error:
            raise unusable(self.url, error) from error
        except InternalError as error:
            if not _state(error).startswith(_INVALID_TRANSACTION):
                raise
            raise unusable(self.url, error) from error

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        self._running += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._running -= 1
            if self._running == 0:
                self._idle.set()


def parse(url: str) -> URL:
    """A Postgres URL for our driver; raise DatabaseError for any other kind."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:
        raise DatabaseError(
            "the database URL cannot be read: "
            "write it as postgresql://user:password@host:5432/hangwatch"
        ) from error
    if parsed.drivername not in ("postgresql", "postgres", DRIVER):
        raise DatabaseError(
            f"'{parsed.drivername}' is not a database that Hangwatch can use: it needs Postgres, "
            "postgresql://user:password@host:5432/hangwatch, or no URL for its own embedded one"
        )
    return parsed.set(drivername=DRIVER)


def unusable(url: URL, error: Exception) -> DatabaseError:
    """Say why the database at `url` cannot be used; its password is never part of the text."""
    # As people write it and libpq's tools read it: without the driver's name.
    shown = url.set(drivername="postgresql").render_as_string(hide_password=True)
    cause = getattr(error, "orig", None) or error
    words = " ".join(str(cause).split()) or "it does not answer"
    if _state(error) in (READ_ONLY, DISK_FULL):
        return NotWrittenError(
            f"Postgres at {shown} takes no writes: check its disk, that it is the primary, and "
            f"default_transaction_read_only ({words})"
        )
    if "authentication failed" in words or "no pg_hba.conf entry" in words:
        return DatabaseError(
            f"Postgres refused the login of {shown}: check user and password in the database URL "
            f"and pg_hba.conf ({words})"
        )
    if url.database and f'database "{url.database}" does not exist' in words:
        return DatabaseError(
            f"Postgres at {shown} has no database '{url.database}': "
            f"create it with: createdb {url.database}"
        )
    if "statement timeout" in words:
        return DatabaseError(
            f"Postgres at {shown} took over 30 s for one statement: is it overloaded?"
        )
    return DatabaseError(
        f"Postgres cannot be reached at {shown}: check that it runs and that host, port and "
        f"firewall are right, for example with: pg_isready -d '{shown}' ({words})"
    )


def _state(error: Exception) -> str:
    """The SQLSTATE of what Postgres answered; "" where it was no answer of Postgres."""
    return getattr(getattr(error, "orig", None), "sqlstate", None) or ""
