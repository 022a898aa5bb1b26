"""Many clients wait for a verdict: how soon they have it, and what waiting costs the server.
Run `python bench/long_poll.py`; prints a table.

A real server on a real Postgres watches a synthetic job of two ranks over the real wire. The
clients are open connections of one process beside it, each with a request for the verdict and its
index, as schedulers wait. Then the job ends. Times are until an answer is complete, from the first
sign of the change: the event that one more client gets of it, or the first answer if that is
sooner. The idle cost is the
server's CPU and memory with the clients waiting, less what it was just before without them.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.support import postgres, running_server, synthetic_agent, waiting
from tests.support.running_server import RunningServer
from tests.support.synthetic_agent import SyntheticAgent

IDLE_S = 20.0
WAIT = "120s"
MB = 1_000_000
# More than the clients that are asked for: what is measured is the cost, not the limit.
ROOM = {"HANGWATCH_WAITING_MOST": "20000", "HANGWATCH_WAITING_EACH": "20000"}


@dataclass(frozen=True, slots=True)
class Figures:
    clients: int
    answered: int
    p50_s: float
    p99_s: float
    most_s: float
    cpu_share: float  # of a core, while they wait
    cpu_share_alone: float  # of a core, without them
    memory_mb: float  # more than without them


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, nargs="*", default=[500])
    asked = parser.parse_args()
    print("| waiting clients | answered | p50 | p99 | slowest | idle CPU, of a core | without them "
          "| memory for them |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|")
    for clients in asked.clients:
        with _watched() as (server, agent):
            print(_row(asyncio.run(measure(server, agent, clients))), flush=True)


@contextlib.contextmanager
def _watched() -> Iterator[tuple[RunningServer, SyntheticAgent]]:
    """A server with one healthy job, of a Postgres that is gone afterwards."""
    with (
        postgres.server() as url,
        postgres.fresh_database(url) as database,
        postgres.data_folder() as folder,
        running_server.running(database, folder, ROOM) as server,
    ):
        token = server.new_token("agent", "node-a")
        with synthetic_agent.beating(server.url, token, "node-a") as agent:
            yield server, agent


async def measure(server: RunningServer, agent: SyntheticAgent, clients: int) -> Figures:
    """Let them wait, look at the cost, end the job, and time every answer."""
    job, index = await asyncio.to_thread(_healthy, server)
    process = psutil.Process(server.process.pid)
    alone_share = await _cpu_share(process)
    memory_before = process.memory_info().rss
    told: asyncio.Future[float] = asyncio.get_running_loop().create_future()
    async with asyncio.TaskGroup() as group:
        group.create_task(_observe(server, job, told))
        waits = [group.create_task(_wait(server, job, index)) for _ in range(clients)]
        await asyncio.sleep(2)  # until the last of them has asked
        idle_share = await _cpu_share(process)
        memory = process.memory_info().rss - memory_before
        agent.is_ended = True
        told_s = await told
    done = [done_s for done_s, is_new in map(_done, waits) if is_new]
    begun_s = min(told_s, *done)
    took = sorted(done_s - begun_s for done_s in done)
    return Figures(
        clients=clients,
        answered=len(took),
        p50_s=statistics.median(took),
        p99_s=took[int(0.99 * (len(took) - 1))],
        most_s=took[-1],
        cpu_share=idle_share,
        cpu_share_alone=alone_share,
        memory_mb=memory / MB,
    )


def _healthy(server: RunningServer) -> tuple[str, int]:
    with server.client() as client:

        def found() -> tuple[str, int] | None:
            items = client.get("/api/v1/jobs").json()["items"]
            if not items or items[0]["state"] != "healthy":
                return None
            return items[0]["id"], items[0]["verdict"]["index"]

        return waiting.until(found, 60, "the job is healthy")


def _done(task: asyncio.Task[tuple[float, bool]]) -> tuple[float, bool]:
    return task.result()


async def _cpu_share(process: psutil.Process) -> float:
    begun_s, begun = time.monotonic(), process.cpu_times()
    await asyncio.sleep(IDLE_S)
    now = process.cpu_times()
    spent_s = now.user + now.system - begun.user - begun.system
    return spent_s / (time.monotonic() - begun_s)


async def _wait(server: RunningServer, job: str, index: int) -> tuple[float, bool]:
    """When the answer was complete, and whether it is about another index."""
    path = f"/api/v1/jobs/{job}/verdict?wait={WAIT}&index={index}"
    reader, writer = await _ask(server, path)
    head = await reader.readuntil(b"\r\n\r\n")
    size = next(
        int(line.split(b":")[1])
        for line in head.lower().split(b"\r\n")
        if line.startswith(b"content-length:")
    )
    body = json.loads(await reader.readexactly(size))
    done_s = time.monotonic()
    writer.close()
    return done_s, head.startswith(b"HTTP/1.1 200") and body["index"] != index


async def _observe(server: RunningServer, job: str, told: asyncio.Future[float]) -> None:
    """Set `told` at the event after which the job is not healthy any more."""
    reader, writer = await _ask(server, f"/api/v1/events?job={job}")
    while True:
        line = await reader.readline()
        if line.startswith(b"event: verdict"):
            told.set_result(time.monotonic())
            break
    writer.close()


async def _ask(
    server: RunningServer, path: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    place = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    writer.write(
        f"GET {path} HTTP/1.1\r\nHost: {place.netloc}\r\n"
        f"Authorization: Bearer {server.admin_token}\r\n\r\n".encode()
    )
    await writer.drain()
    return reader, writer


def _row(found: Figures) -> str:
    return (
        f"| {found.clients} | {found.answered} | {found.p50_s:.3f} s | {found.p99_s:.3f} s "
        f"| {found.most_s:.3f} s | {found.cpu_share:.1%} | {found.cpu_share_alone:.1%} "
        f"| {found.memory_mb:.0f} MB |"
    )


if __name__ == "__main__":
    main()
