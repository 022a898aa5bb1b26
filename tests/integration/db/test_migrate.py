"""Migrations and connections against a real Postgres: from empty, twice, from too new."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.pool import NullPool
from tests.support import postgres as support
from tests.support import verdicts as make
from tests.support import waiting

from hangwatch_server.db import captures, jobs, migrate, tables
from hangwatch_server.db.engine import Database
from hangwatch_server.errors import DatabaseError

pytestmark = [pytest.mark.integration, pytest.mark.anyio]


@pytest.fixture
def empty_url(postgres: str) -> Iterator[str]:
    with support.fresh_database(postgres) as url:
        yield url


async def test_empty_database_gets_the_schema_that_the_tables_describe(empty_url: str) -> None:
    assert await migrate.revision(empty_url) is None

    await migrate.upgrade(empty_url)

    engine = create_engine(empty_url, poolclass=NullPool)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, tables.metadata) == []


async def test_parts_stored_before_outlines_survive_the_upgrade_without_one(
    empty_url: str,
) -> None:
    await migrate.upgrade(empty_url, to="0003")
    db = Database(empty_url)
    await db.open()
    await jobs.save(db, make.job(), "run-1", {})
    await captures.create(db, make.capture("c1"))
    support.execute(
        empty_url,
        "INSERT INTO capture_parts "
        "VALUES ('c1', 0, 'node-a', 812, true, false, '', '', now(), '{}')",
    )

    await migrate.upgrade(empty_url)

    found = await captures.find(db, "c1")
    await db.close()
    assert found is not None
    assert [part.rank for part in found.parts] == [0]


async def test_servers_that_start_together_upgrade_once(empty_url: str) -> None:
    await asyncio.gather(*(migrate.upgrade(empty_url) for _ in range(3)))

    assert await migrate.revision(empty_url) == "0010"


async def test_newer_schema_is_refused_and_left_alone(empty_url: str) -> None:
    await migrate.upgrade(empty_url)
    support.execute(empty_url, "UPDATE alembic_version SET version_num = '9999'")

    with pytest.raises(DatabaseError, match=r"schema 9999.*newer version.*pip install"):
        await migrate.upgrade(empty_url)

    assert await migrate.revision(empty_url) == "9999"


async def test_plain_url_means_the_same_driver(database_url: str) -> None:
    db = Database(support.plain(database_url))
    await db.open()
    await db.ping()
    await db.close()


async def test_unknown_database_is_told_with_the_way_to_make_it(postgres: str) -> None:
    with pytest.raises(DatabaseError, match=r"has no database 'nowhere'.*createdb nowhere"):
        await Database(support.url_of(postgres, "nowhere")).open()


async def test_unknown_user_is_told_without_the_password(postgres: str) -> None:
    url = make_url(postgres).set(username="stranger", password="hush")

    with pytest.raises(DatabaseError) as caught:
        await Database(url.render_as_string(hide_password=False)).open()

    assert "stranger" in str(caught.value)
    assert "refused the login" in str(caught.value)
    assert "hush" not in str(caught.value)


async def test_unreachable_server_is_told_with_the_next_command() -> None:
    url = "postgresql://ann:hush@127.0.0.1:1/hangwatch"

    with pytest.raises(DatabaseError, match=r"cannot be reached.*pg_isready") as caught:
        await Database(url).open()

    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("url", ["sqlite:///x.db", "mysql://host/db", "not a url"])
async def test_url_of_another_kind_is_refused_in_words(url: str) -> None:
    with pytest.raises(DatabaseError, match="postgresql://user:password@host:5432/hangwatch"):
        Database(url)


async def test_closed_database_says_so(database_url: str) -> None:
    db = Database(database_url)
    with pytest.raises(DatabaseError, match="before it was opened"):
        await db.ping()


async def test_closing_lets_a_running_transaction_end_and_leaves_no_connection_open(
    database_url: str, postgres: str
) -> None:
    db = Database(database_url)
    await db.open()
    began = asyncio.Event()

    async def slow() -> int:
        async with db.begin() as connection:
            began.set()
            await connection.execute(text("SELECT pg_sleep(0.2)"))
            return 1

    running = asyncio.create_task(slow())
    await began.wait()
    await db.close()

    assert await running == 1
    with pytest.raises(DatabaseError, match="after it was closed"):
        await db.ping()
    waiting.until(lambda: not connections(postgres, db), 60, "no connection is left open")


def connections(server_url: str, db: Database) -> int:
    with psycopg.connect(support.plain(server_url)) as other:
        found = other.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = %s", [db.url.database]
        ).fetchone()
    assert found is not None
    return int(found[0])
