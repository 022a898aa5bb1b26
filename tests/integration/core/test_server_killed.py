"""The server process is killed during an incident and started again on the same database."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.integration.core import synthetic
from tests.integration.core.waiting import until

from hangwatch_server.board.base import job_id
from hangwatch_server.db import incidents as incident_rows
from hangwatch_server.db.engine import Database
from hangwatch_server.demo import stage
from hangwatch_server.errors import NotFoundError
from hangwatch_server.model import IncidentState
from hangwatch_server.security import Authenticator, TokenRequest

pytestmark = [pytest.mark.integration, pytest.mark.anyio]
JOB = job_id(synthetic.KEY)
ADMIN = "an-admin-token-for-this-test-only-0123456789"
SERVE = """
import sys
from pathlib import Path
from hangwatch_server import serve
from hangwatch_server.settings import ServerSettings
url, port, folder, token = sys.argv[1:]
serve.run(ServerSettings(
    database_url=url, port=int(port), data_dir=Path(folder), bootstrap_token=token, lease_ttl_s=2.0,
), origins={})
"""


@contextmanager
def process(database_url: str, port: int, folder: str) -> Iterator[subprocess.Popen[bytes]]:
    """`serve.run` in a process of its own; killed with its group at the end."""
    child = subprocess.Popen(
        [sys.executable, "-c", SERVE, database_url, str(port), folder, ADMIN],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield child
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait(60)


def call(port: int, path: str) -> Any:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", headers={"Authorization": f"Bearer {ADMIN}"}
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


async def verdict(port: int) -> Any:
    try:
        return await asyncio.to_thread(call, port, f"/api/v1/jobs/{JOB}/verdict")
    except OSError as error:
        raise NotFoundError(str(error)) from error  # not up yet, or the job is not there yet


async def test_incident_survives_a_killed_server_and_no_second_one_is_opened(
    database_url: str, db: Database, tmp_path: Path
) -> None:
    port = stage.free_port()
    stream = f"ws://127.0.0.1:{port}/api/v1/agent/stream"
    job = synthetic.Job(time.monotonic, odd_op="broadcast")
    _, token = await Authenticator(db).create(
        TokenRequest(name="agent", scopes=("agent",), node="node-a")
    )

    with process(database_url, port, str(tmp_path)):
        await until(lambda: _up(port), bool)
        async with synthetic.agent(stream, token, "node-a", job, range(4), 0.5):
            await until(lambda: verdict(port), lambda found: found["state"] == "healthy")
            job.stall()
            before = await until(lambda: verdict(port), lambda found: found["state"] == "hung")

    with process(database_url, port, str(tmp_path)):
        away = await until(lambda: verdict(port), lambda found: found["state"] == "unknown")
        async with synthetic.agent(stream, token, "node-a", job, range(4), 0.5):
            after = await until(lambda: verdict(port), lambda found: found["state"] == "hung")
    found, _ = await incident_rows.list_page(db, states=list(IncidentState))

    assert away["incident"] == before["incident"]
    assert after["incident"] == before["incident"]
    assert after["attempt"] == 1
    assert after["index"] >= before["index"]
    assert [incident.id for incident in found] == [before["incident"]]
    assert found[0].state is IncidentState.CONFIRMED


async def _up(port: int) -> bool:
    try:
        await asyncio.to_thread(call, port, "/healthz")
    except OSError:
        return False
    return True
