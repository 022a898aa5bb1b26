"""The backup and restore of docs/deploy.md, by the very commands that it shows.

They run here instead of in compose's container of Postgres, so `docker compose exec` is left out.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from psycopg import sql
from tests.support import postgres, running_server, stock_postgres
from tests.support import verdicts as make
from tests.support.running_server import RunningServer
from tests.support.stock_postgres import Stock

from hangwatch_server.db import captures, incidents, jobs, leases, migrate
from hangwatch_server.db.engine import Database
from hangwatch_server.model import CaptureState

pytestmark = pytest.mark.integration

PAGE = Path(__file__).resolve().parents[3] / "docs" / "deploy.md"
PREFIX = "docker compose exec -T postgres "
NAME = "hangwatch"  # of role and database, as docker-compose.yml has them
TOKEN = "hw_of_a_test_and_the_same_at_both_servers"
JOB = make.job(first_seen=datetime.now(UTC))


@pytest.fixture
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="hangwatch-test-"))
    yield made
    shutil.rmtree(made)


def shown(section: str) -> list[str]:
    """The commands between two marks of the page, as they run inside the container."""
    marked = re.search(rf"<!-- tested: {section} -->(.*?)<!-- end -->", PAGE.read_text(), re.DOTALL)
    assert marked
    lines = [line.strip() for line in marked[1].splitlines() if line.strip()]
    assert lines
    assert all(line.startswith(PREFIX) for line in lines)
    return [line.removeprefix(PREFIX) for line in lines]


def run(section: str, folder: Path, stock: Stock) -> None:
    """The section's commands against this Postgres, with files in `folder`."""
    environment = {**os.environ, **stock.environment}
    for line in shown(section):
        subprocess.run(["sh", "-c", line], cwd=folder, env=environment, check=True, timeout=120)


async def fill(url: str) -> tuple[str, ...]:
    """A hang with its evidence, as detection stores it; the addresses at which people read it."""
    db = Database(url)
    await db.open()
    await jobs.save(db, JOB, "run-1", {})
    lease = await leases.claim(db, JOB.id, "server-1", 60)
    assert lease is not None
    incident = await incidents.open_incident(db, lease, make.verdict(JOB.id))
    await captures.create(db, make.capture("c1", incident=incident.id))
    await captures.store_part(db, make.part("c1"), "node-b")
    await captures.finish(db, "c1", CaptureState.COMPLETE)
    await incidents.comment(db, incident.id, "ada", "looking")
    await leases.release(db, lease)
    await db.close()
    return (
        f"/api/v1/incidents/{incident.id}",
        f"/api/v1/incidents/{incident.id}/captures",
        f"/api/v1/incidents/{incident.id}/tree",
        "/api/v1/captures/c1",
        "/api/v1/captures/c1.txt",
        "/api/v1/silences",
        "/api/v1/audit",
    )


def served(stock: Stock, folder: Path) -> Any:
    return running_server.running(stock.url, folder / "data", {"HANGWATCH_BOOTSTRAP_TOKEN": TOKEN})


def change(server: RunningServer) -> str:
    """What people leave behind by the API; the text of a token that somebody holds."""
    with server.client(TOKEN) as client:
        silence = {"matchers": [{"field": "job", "pattern": "gpt-*"}], "for": "2h"}
        client.post("/api/v1/silences", json=silence).raise_for_status()
        body = {"name": "dashboard", "scopes": ["read", "admin"]}
        answer = client.post("/api/v1/tokens", json=body).raise_for_status()
        return str(answer.json()["token"])


def answers(server: RunningServer, token: str, paths: tuple[str, ...]) -> Mapping[str, str]:
    with server.client(token) as client:
        return {path: client.get(path).raise_for_status().text for path in paths}


def rows(stock: Stock) -> dict[str, list[str]]:
    """Every table as text, by name."""
    with postgres.plain_connection(stock.url) as connection:
        names = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
        ).fetchall()
        return {
            str(name): [
                str(row)
                for (row,) in connection.execute(
                    sql.SQL("SELECT t::text FROM {} AS t ORDER BY 1").format(
                        sql.Identifier(str(name))
                    )
                )
            ]
            for (name,) in names
        }


def test_a_restored_backup_answers_as_the_server_did_from_which_it_came(folder: Path) -> None:
    with stock_postgres.started(NAME, NAME) as old:
        asyncio.run(migrate.upgrade(old.url))
        paths = asyncio.run(fill(old.url))
        with served(old, folder) as server:
            token = change(server)
            before = answers(server, token, paths)
        kept = rows(old)
        run("backup", folder, old)
    dumped = (folder / "hangwatch.dump").stat()

    with stock_postgres.started(NAME, NAME) as new:
        run("restore", folder, new)
        restored = rows(new)
        with served(new, folder) as server:
            after = answers(server, token, paths)

    assert dumped.st_size > 10_000
    assert restored == kept
    assert "looking" in before[paths[0]]
    assert "__getitem__" in before["/api/v1/captures/c1.txt"]
    assert after == before


def test_a_restore_replaces_what_was_there(folder: Path) -> None:
    with stock_postgres.started(NAME, NAME) as stock:
        asyncio.run(migrate.upgrade(stock.url))
        asyncio.run(fill(stock.url))
        kept = rows(stock)
        run("backup", folder, stock)
        postgres.execute(stock.url, "DELETE FROM incidents", "CREATE TABLE strange (id int)")

        run("restore", folder, stock)

        assert rows(stock) == kept
