"""Fixtures of the integration tests: a real Postgres, and per test a migrated database in it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from tests.support import postgres as support

from hangwatch_server.db import migrate
from hangwatch_server.db.engine import Database


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """URL of the session's server, for tests that make databases themselves."""
    with support.server() as url:
        yield url


@pytest.fixture(scope="session")
def migrated(postgres: str) -> str:
    """The server's URL, once it holds a migrated template database."""
    support.create_database(postgres, support.TEMPLATE)
    asyncio.run(migrate.upgrade(support.url_of(postgres, support.TEMPLATE)))
    return postgres


@pytest.fixture
def database_url(migrated: str) -> Iterator[str]:
    """URL of a migrated database of this test's own."""
    with support.fresh_database(migrated, support.TEMPLATE) as url:
        yield url


@pytest.fixture
async def db(database_url: str, anyio_backend: str) -> AsyncIterator[Database]:
    """That database, opened."""
    database = Database(database_url)
    await database.open()
    yield database
    await database.close()
