"""The body of `hangwatch db upgrade`."""

from __future__ import annotations

import asyncio

from hangwatch_server.db import migrate
from hangwatch_server.db.embedded import EmbeddedPostgres
from hangwatch_server.settings import ServerSettings


def upgrade(settings: ServerSettings) -> int:
    """Bring the schema of the chosen database up to this version."""
    if settings.database_url:
        asyncio.run(migrate.upgrade(settings.database_url))
    else:
        postgres = EmbeddedPostgres(settings.data_dir)
        url = postgres.start()
        try:
            asyncio.run(migrate.upgrade(url))
        finally:
            postgres.stop()
    print("the database has the schema of this version")
    return 0
