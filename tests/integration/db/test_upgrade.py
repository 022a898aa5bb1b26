"""From every revision that was ever released, with a row in every table: nothing is lost.

And two servers of neighbouring versions work on one database: a migration only adds, so that the
server before it goes on reading and writing beside the new one until it is replaced.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import (
    Column,
    Connection,
    Engine,
    MetaData,
    Table,
    create_engine,
    insert,
    inspect,
    select,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.pool import NullPool
from sqlalchemy.types import Boolean, DateTime, Float, Integer, LargeBinary
from tests.support import postgres as support

from hangwatch_server import assets
from hangwatch_server.db import migrate

pytestmark = [pytest.mark.integration, pytest.mark.anyio]
AT = datetime(2026, 5, 1, 12, tzinfo=UTC)
# Columns that take a few words only.
WORDS = {"incidents.state": "confirmed", "captures.state": "complete"}
OWN_TABLE = "alembic_version"
# What a migration took away, though a server before it still uses it, and what that costs. Each
# release since then removes only what the release before it has stopped using.
CONTRACTED: dict[str, str] = {}


def revisions() -> list[str]:
    """All, oldest first."""
    config = Config()
    config.set_main_option("script_location", str(assets.migrations()))
    scripts = ScriptDirectory.from_config(config).walk_revisions()
    return [script.revision for script in scripts][::-1]


@pytest.fixture
def empty_url(postgres: str) -> Iterator[str]:
    with support.fresh_database(postgres) as url:
        yield url


@pytest.mark.parametrize("revision", revisions())
async def test_every_row_of_every_table_survives_the_upgrade_from(
    revision: str, empty_url: str
) -> None:
    await migrate.upgrade(empty_url, to=revision)
    engine = create_engine(empty_url, poolclass=NullPool)
    with engine.begin() as connection:
        before = _fill(connection)

    await migrate.upgrade(empty_url)

    after = _rows(engine)
    assert before
    assert {name: rows.keys() - after[name].keys() for name, rows in before.items()} == {
        name: set() for name in before
    }
    changed = {
        f"{name}.{column}"
        for name, columns in before.items()
        for column, value in columns.items()
        if after[name][column] != value
    }
    assert changed == set()


async def test_migration_takes_nothing_away_from_the_server_before_it(empty_url: str) -> None:
    engine = create_engine(empty_url, poolclass=NullPool)
    before: dict[str, Column[Any]] = {}
    bound: dict[str, frozenset[str]] = {}
    found: dict[str, str] = {}
    for revision in revisions():
        await migrate.upgrade(empty_url, to=revision)
        after, binds = _columns(engine), _bounds(engine)
        taken = (*_taken(before, after), *_bound(before, bound, binds))
        found |= {f"{revision}: {what}": why for what, why in taken}
        before, bound = after, binds

    assert found == CONTRACTED


def _fill(connection: Connection) -> dict[str, dict[str, Any]]:
    """One row in each table, a value in each column, as told by the schema; by table."""
    metadata, given = MetaData(), {}
    metadata.reflect(connection)
    for table in metadata.sorted_tables:
        if table.name != OWN_TABLE:
            values = {
                column.name: _value(table, column, given)
                for column in table.columns
                if column.computed is None and column.identity is None
            }
            row = connection.execute(insert(table).values(values).returning(*table.c))
            given[table.name] = dict(row.mappings().one())
    return given


def _value(table: Table, column: Column[Any], given: dict[str, dict[str, Any]]) -> Any:
    for key in column.foreign_keys:
        other = given.get(key.column.table.name, {})  # none where it refers to its own table
        return other.get(key.column.name)
    match column.type:
        case Boolean():
            return True
        case Integer():
            return 7
        case Float():
            return 0.5
        case DateTime():
            return AT
        case JSONB():
            return {"kept": [1, "two"]}
        case ARRAY():
            return ["kept"]
        case LargeBinary():
            return b"kept"
        case _:
            name = f"{table.name}.{column.name}"
            return WORDS.get(name, name)


def _rows(engine: Engine) -> dict[str, dict[str, Any]]:
    """The only row of each table."""
    metadata, found = MetaData(), {}
    with engine.connect() as connection:
        metadata.reflect(connection)
        for table in metadata.sorted_tables:
            rows = connection.execute(select(table)).mappings().all()
            found[table.name] = dict(rows[0]) if rows else {}
    return found


def _columns(engine: Engine) -> dict[str, Column[Any]]:
    """By "table.column"."""
    metadata = MetaData()
    metadata.reflect(engine)
    return {
        f"{table.name}.{column.name}": column
        for table in metadata.tables.values()
        if table.name != OWN_TABLE
        for column in table.columns
    }


def _taken(
    before: dict[str, Column[Any]], after: dict[str, Column[Any]]
) -> Iterator[tuple[str, str]]:
    """What a server that knows only `before` would stumble over in `after`."""
    known = {name.partition(".")[0] for name in before}
    for name, column in before.items():
        if name not in after:
            yield name, "is gone"
        elif repr(after[name].type) != repr(column.type):
            yield name, f"was {column.type!r}, is {after[name].type!r}"
        elif column.nullable and not after[name].nullable:
            yield name, "must be given now"
    for name in after.keys() - before.keys():
        column = after[name]
        is_needed = not column.nullable and column.server_default is None
        if name.partition(".")[0] in known and is_needed:
            yield name, "is new and must be given"


def _bounds(engine: Engine) -> dict[str, frozenset[str]]:
    """What a row must fulfil, in words, and the columns that it is about."""
    found: dict[str, frozenset[str]] = {}
    looking = inspect(engine)
    for table in looking.get_table_names():
        for index in looking.get_indexes(table):
            if index["unique"]:
                found[f"{table}: {index['name']}"] = _names(table, index["column_names"])
        for unique in looking.get_unique_constraints(table):
            found[f"{table}: {unique['name']}"] = _names(table, unique["column_names"])
        for key in looking.get_foreign_keys(table):
            found[f"{table}: {key['name']}"] = _names(table, key["constrained_columns"])
        for check in looking.get_check_constraints(table):
            found[f"{table}: {check['sqltext']}"] = frozenset()
    return found


def _names(table: str, columns: Sequence[str | None]) -> frozenset[str]:
    return frozenset(f"{table}.{column}" for column in columns)


def _bound(
    known: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, frozenset[str]]
) -> Iterator[tuple[str, str]]:
    """New bounds on what a server that knows only the columns of before writes."""
    tables = {name.partition(".")[0] for name in known}
    for what in after.keys() - before.keys():
        if what.partition(":")[0] in tables and after[what] <= known.keys():
            yield what, "binds more than before"
