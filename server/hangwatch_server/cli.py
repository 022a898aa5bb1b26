"""The bodies of the server's commands; flags and errors are the business of the one entry point."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from hangwatch_server import offline_command
from hangwatch_server import serve as server
from hangwatch_server.db import migrate
from hangwatch_server.db.embedded import EmbeddedPostgres
from hangwatch_server.settings import ServerSettings


def serve(settings: ServerSettings, origins: Mapping[str, str]) -> int:
    """`hangwatch serve`; `origins` names the sources of the settings that are no defaults."""
    server.run(settings, origins)
    return 0


def upgrade(settings: ServerSettings) -> int:
    """`hangwatch db upgrade`: bring the schema of the chosen database up to this version."""
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


def diagnose(paths: Sequence[str], *, as_json: bool, show: Callable[[str], None]) -> int:
    """`hangwatch diagnose`: 0 nobody holds up another, 1 somebody does, 2 the files cannot tell."""
    return offline_command.run(paths, as_json=as_json, show=show)
