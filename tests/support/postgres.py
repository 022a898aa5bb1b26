"""One embedded Postgres for a test session and a migrated database of its own for each test.

The real launcher and the real migrations. Only durability is off: nobody pulls the plug in a test.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from sqlalchemy import make_url

from hangwatch_server.db.embedded import EmbeddedPostgres

FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
TEMPLATE = "migrated"

_numbers = itertools.count(1)


@contextmanager
def data_folder() -> Iterator[Path]:
    """A data folder that Postgres's account can reach, unlike root's `tmp_path`."""
    folder = Path(tempfile.mkdtemp(prefix="hangwatch-test-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def server() -> Iterator[str]:
    """A running embedded Postgres; gives the URL of its default, empty database."""
    with data_folder() as folder:
        postgres = EmbeddedPostgres(folder, settings=FAST)
        url = postgres.start()
        try:
            yield url
        finally:
            postgres.stop()


@contextmanager
def fresh_database(server_url: str, template: str = "template1") -> Iterator[str]:
    """A new database on the server, dropped afterwards; gives its URL."""
    name = f"t_{next(_numbers)}"
    create_database(server_url, name, template)
    try:
        yield url_of(server_url, name)
    finally:
        execute(server_url, f"DROP DATABASE {name} WITH (FORCE)")


def create_database(server_url: str, name: str, template: str = "template1") -> None:
    execute(server_url, f"CREATE DATABASE {name} TEMPLATE {template}")


def plain_connection(url: str) -> psycopg.Connection[tuple[object, ...]]:
    """To look at rows, or change them behind the server's back; committed when it is closed."""
    return psycopg.connect(plain(url))


def execute(url: str, *statements: str) -> None:
    """Run statements, each in its own transaction."""
    with psycopg.connect(plain(url), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def url_of(server_url: str, database: str) -> str:
    return make_url(server_url).set(database=database).render_as_string(hide_password=False)


def plain(url: str) -> str:
    """The URL as libpq reads it."""
    return url.replace("postgresql+psycopg://", "postgresql://")
