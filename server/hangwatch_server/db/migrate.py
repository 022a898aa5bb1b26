"""Brings a database to this version's schema by the Alembic scripts in `migrations/`.

One server at a time (advisory lock), all in one transaction: a failed upgrade leaves what
was there. Not for going back: migrations run forward only.
"""

from __future__ import annotations

import asyncio

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.pool import NullPool

from hangwatch_server import assets
from hangwatch_server.db import engine
from hangwatch_server.errors import DatabaseError

_LOCK = 0x68616E67  # "hang"; any number that no other program on this database uses


async def upgrade(url: str, to: str = "head") -> None:
    """Bring the database to this schema; DatabaseError if a newer version has changed it."""
    await asyncio.to_thread(_upgrade, url, to)


async def revision(url: str) -> str | None:
    """The schema's present revision; None for an empty database."""
    return await asyncio.to_thread(_revision, url)


def _upgrade(url: str, to: str) -> None:
    parsed = engine.parse(url)
    config = Config()
    config.set_main_option("script_location", str(assets.migrations()).replace("%", "%%"))
    pool = create_engine(parsed, poolclass=NullPool, connect_args={"connect_timeout": 10})
    try:
        with pool.begin() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
            _refuse_newer(connection, ScriptDirectory.from_config(config))
            config.attributes["connection"] = connection
            command.upgrade(config, to)
    except (OperationalError, InterfaceError) as error:
        raise engine.unusable(parsed, error) from error
    finally:
        pool.dispose()


def _revision(url: str) -> str | None:
    parsed = engine.parse(url)
    pool = create_engine(parsed, poolclass=NullPool, connect_args={"connect_timeout": 10})
    try:
        with pool.connect() as connection:
            return MigrationContext.configure(connection).get_current_revision()
    except (OperationalError, InterfaceError) as error:
        raise engine.unusable(parsed, error) from error
    finally:
        pool.dispose()


def _refuse_newer(connection: Connection, scripts: ScriptDirectory) -> None:
    known = {script.revision for script in scripts.walk_revisions()}
    present = MigrationContext.configure(connection).get_current_heads()
    unknown = [name for name in present if name not in known]
    if unknown:
        raise DatabaseError(
            f"the database has schema {unknown[0]}, which this version of Hangwatch does not know: "
            "a newer version has used it. Run: pip install --upgrade 'hangwatch[server]', "
            "or use another database"
        )
