"""Two real server processes, and the agents of a job that lies across them."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx
from tests.integration.core import synthetic
from tests.integration.core.waiting import until
from tests.support import postgres, running_server
from tests.support.running_server import RunningServer

from hangwatch_server.board.base import job_id
from hangwatch_server.db import incidents as incident_rows
from hangwatch_server.db import leases
from hangwatch_server.db.engine import Database
from hangwatch_server.errors import NotFoundError
from hangwatch_server.model import IncidentState

JOB = job_id(synthetic.KEY)
NODES = ("node-a", "node-b")
Verdict = Any  # as JSON


@contextlib.contextmanager
def two_servers(database_url: str, settings: Mapping[str, str]) -> Iterator[list[RunningServer]]:
    """On one Postgres, started at the same time, with one admin token."""
    token = f"hw_test_{secrets.token_urlsafe(24)}"
    given = {"HANGWATCH_BOOTSTRAP_TOKEN": token, **settings}
    with contextlib.ExitStack() as stack:
        folders = [stack.enter_context(postgres.data_folder()) for _ in NODES]
        starting = [running_server.running(database_url, folder, given) for folder in folders]
        with ThreadPoolExecutor() as threads:
            found = list(threads.map(stack.enter_context, starting))
        for server in found:
            server.admin_token = token
        yield found


class Agents:
    """One agent per node, each of which may come back at another server."""

    def __init__(self, servers: list[RunningServer], job: synthetic.Job) -> None:
        self._job = job
        self._tokens = {node: servers[0].new_token("agent", node) for node in NODES}
        self._lines: dict[str, AsyncExitStack] = {}

    async def connect(self, node: str, server: RunningServer) -> None:
        """As an agent does: again and again until it is taken."""
        await self.leave(node)
        url = server.url.replace("http", "ws") + "/api/v1/agent/stream"
        ranks = (0, 1) if node == NODES[0] else (2, 3)

        async def dial() -> AsyncExitStack:
            line = AsyncExitStack()
            agent = synthetic.agent(url, self._tokens[node], node, self._job, ranks, 0.5)
            await line.enter_async_context(agent)
            return line

        self._lines[node] = await until(dial, lambda line: True)

    async def leave(self, node: str) -> None:
        if node in self._lines:
            await self._lines.pop(node).aclose()


@asynccontextmanager
async def job_across(servers: list[RunningServer]) -> AsyncIterator[tuple[synthetic.Job, Agents]]:
    """Two healthy ranks at each server."""
    job = synthetic.Job(time.monotonic, odd_op="broadcast")
    agents = Agents(servers, job)
    try:
        for node, server in zip(NODES, servers, strict=True):
            await agents.connect(node, server)
        await at_all(servers, is_whole("healthy"))
        yield job, agents
    finally:
        for node in NODES:
            await agents.leave(node)


async def at_all(servers: list[RunningServer], is_met: Callable[[Verdict], bool]) -> list[Verdict]:
    """The first verdict of each server that meets the condition."""
    return [await at(server, is_met) for server in servers]


async def at(server: RunningServer, is_met: Callable[[Verdict], bool]) -> Verdict:
    return await until(lambda: verdict(server), is_met)


async def verdict(server: RunningServer) -> Verdict:
    def ask() -> Verdict:
        with server.client() as client:
            return client.get(f"/api/v1/jobs/{JOB}/verdict", timeout=10).raise_for_status().json()

    try:
        return await asyncio.to_thread(ask)
    except (httpx.HTTPError, OSError) as error:
        raise NotFoundError(str(error)) from error


def is_whole(state: str) -> Callable[[Verdict], bool]:
    return lambda found: bool(found["state"] == state and found["coverage"]["reporting"] == 4)


async def by_owner(
    db: Database, servers: list[RunningServer]
) -> tuple[tuple[str, RunningServer], tuple[str, RunningServer]]:
    """Node and server, the owner of the job's detection first: the lease names its process."""
    holder = await leases.holder(db, JOB)
    pairs = list(zip(NODES, servers, strict=True))
    pairs.sort(key=lambda pair: pid(pair[1]) not in holder)
    return pairs[0], pairs[1]


async def owned_by(db: Database, server: RunningServer) -> None:
    await until(lambda: leases.holder(db, JOB), lambda holder: pid(server) in holder)


async def incidents_in(db: Database) -> list[str]:
    found, _ = await incident_rows.list_page(db, states=list(IncidentState), limit=10)
    return [incident.id for incident in found]


def pid(server: RunningServer) -> str:
    """As it stands in the holder of a lease."""
    return f":{server.process.pid}:"
