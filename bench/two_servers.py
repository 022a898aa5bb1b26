"""Two servers as one: python bench/two_servers.py [--changes 10].

Two real servers on one Postgres and one Redis, and a job with a node at each of them, whose agents
speak the real wire. Prints how far apart long polls and pages of both tell of a change, what is
shown while Redis is gone for 20 s, and how soon the verdict stands at the other server when the
owner of a hung job is killed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import os
import re
import signal
import statistics
import sys
import threading
import time
from math import inf
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import httpx
from tests.integration.core import synthetic
from tests.integration.replicas import processes
from tests.integration.replicas.processes import JOB, Agents, at, at_all, is_whole
from tests.support import postgres, redis
from tests.support.redis import RedisServer
from tests.support.running_server import RunningServer

from hangwatch_server.db import migrate
from hangwatch_server.db.engine import Database

GONE_S = 20.0
PAGE_S = 1.5  # a page is drawn again once a second at most
_SHOWN = re.compile(r"verdict-state.*?>\s*(healthy|hung)", re.IGNORECASE | re.DOTALL)


class Told:
    """When each server told of each change: by long poll, and in an open page."""

    def __init__(self, servers: list[RunningServer]) -> None:
        self.polls: list[dict[int, float]] = [{} for _ in servers]
        self.pages: list[list[tuple[str, float]]] = [[] for _ in servers]
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=watch, args=(number, server), daemon=True)
            for number, server in enumerate(servers)
            for watch in (self._poll, self._read)
        ]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._over.set()

    def _poll(self, number: int, server: RunningServer) -> None:
        index = 0
        with server.client() as client, contextlib.suppress(httpx.HTTPError):
            while not self._over.is_set():
                query: dict[str, str | int] = {"index": index, "wait": "5s"}
                found = client.get(f"/api/v1/jobs/{JOB}/verdict", params=query).json()
                index = found["index"]
                self.polls[number].setdefault(index, time.monotonic())

    def _read(self, number: int, server: RunningServer) -> None:
        address = f"{server.url}/jobs/{JOB}/live"
        with contextlib.suppress(httpx.HTTPError), httpx.stream("GET", address) as stream:
            text = ""
            for line in stream.iter_lines():
                text = f"{text}\n{line}" if line else ""
                shown = _SHOWN.search(text)
                if shown:
                    self.pages[number].append((shown.group(1).lower(), time.monotonic()))
                    text = ""
                if self._over.is_set():
                    return

    def apart_s(self) -> list[float]:
        """Between the answers of both long polls, for each index that both told of."""
        first, second = self.polls
        return [abs(first[index] - second[index]) for index in sorted(first.keys() & second.keys())]

    def pages_apart_s(self) -> list[float]:
        """From each change of the state in one page to the same change in the other."""
        first, second = (_changes(page) for page in self.pages)
        return [
            min((abs(at_s - there_s) for other, there_s in second if other == state), default=inf)
            for state, at_s in first
        ]


def _changes(page: list[tuple[str, float]]) -> list[tuple[str, float]]:
    pairs = itertools.pairwise([("", 0.0), *page])
    return [one for before, one in pairs if one[0] != before[0]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--changes", type=int, default=10)
    asked = parser.parse_args()
    with postgres.server() as url, redis.server() as broker:
        asyncio.run(migrate.upgrade(url))
        settings = {"HANGWATCH_REDIS_URL": broker.url, "HANGWATCH_ALLOW_ANONYMOUS": "true"}
        with processes.two_servers(url, settings) as servers:
            asyncio.run(_measure(url, servers, broker, asked.changes))


async def _measure(
    url: str, servers: list[RunningServer], broker: RedisServer, changes: int
) -> None:
    db = Database(url)
    await db.open()
    async with processes.job_across(servers) as (job, agents):
        await _agree(servers, job, changes)
        await _without_redis(servers, broker, db)
        await _killed(servers, job, agents, db)
    await db.close()


async def _agree(servers: list[RunningServer], job: synthetic.Job, changes: int) -> None:
    told = Told(servers)
    try:
        for _ in range(changes):
            for change, state in ((job.stall, "hung"), (job.progress, "healthy")):
                change()
                await at_all(servers, is_whole(state))
                await asyncio.sleep(PAGE_S)
    finally:
        told.end()
    _say("long polls apart", _spread(told.apart_s()))
    _say("pages apart", _spread(told.pages_apart_s()))


async def _without_redis(servers: list[RunningServer], broker: RedisServer, db: Database) -> None:
    before, seen = await processes.incidents_in(db), set()
    broker.kill()
    end_s = time.monotonic() + GONE_S
    while time.monotonic() < end_s:
        seen |= {(await processes.verdict(server))["state"] for server in servers}
    broker.start()
    back_s = time.monotonic()
    await at_all(servers, is_whole("healthy"))
    _say(f"Redis gone for {GONE_S:.0f} s", f"states shown: {', '.join(sorted(seen))}")
    _say("from its return to the whole job", f"{time.monotonic() - back_s:.1f} s")
    new = len(await processes.incidents_in(db)) - len(before)
    _say("incidents opened meanwhile", str(new))


async def _killed(
    servers: list[RunningServer], job: synthetic.Job, agents: Agents, db: Database
) -> None:
    job.stall()
    hung = await at_all(servers, is_whole("hung"))
    before = await processes.incidents_in(db)
    (node, owner), (_, other) = await processes.by_owner(db, servers)
    killed_s = time.monotonic()
    os.killpg(owner.process.pid, signal.SIGKILL)
    first = await at(other, lambda found: bool(found["state"] == "hung"))
    _say("owner killed: verdict at the other", f"{time.monotonic() - killed_s:.1f} s")
    await agents.connect(node, other)
    await processes.owned_by(db, other)
    _say("owner killed: the other owns the job", f"{time.monotonic() - killed_s:.1f} s")
    after = await at(other, is_whole("hung"))
    _say("owner killed: of all ranks again", f"{time.monotonic() - killed_s:.1f} s")
    is_same = before == await processes.incidents_in(db)
    same = {one["index"] for one in (*hung, first, after)}
    _say("same incident, same index", f"{is_same}, {len(same) == 1}")


def _spread(found: list[float]) -> str:
    if not found:
        return "nothing was told"
    return f"median {statistics.median(found):.2f} s, most {max(found):.2f} s, of {len(found)}"


def _say(what: str, text: str) -> None:
    print(f"{what:<36} {text}", flush=True)


if __name__ == "__main__":
    main()
