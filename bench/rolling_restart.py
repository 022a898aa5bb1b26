"""Both servers restarted in turn: python bench/rolling_restart.py [--ranks 2000].

Two real servers on one Postgres and one Redis, behind a balancer that asks /readyz. One real job
hangs, its agents connected through the balancer, and `hangwatch simulate` plays a large healthy job
beside it. Each server is ended by SIGTERM and started again, while the verdict is asked for ten
times a second, a long poll waits for it, and a receiver takes the alerts. Prints what was missed.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import itertools
import secrets
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import httpx
from bench.large_job import _played
from tests.support import postgres, redis, running_server
from tests.support.balancer import Balancer
from tests.support.receiver import Receiver
from tests.support.running_server import RunningServer

from hangwatch_agent import client
from hangwatch_server.demo import cases, stage

TOKEN = f"hw_bench_{secrets.token_urlsafe(24)}"
DRAIN_S = 2.0
LONGEST_S = 240.0
AFTER_S = 15.0


@dataclass
class Seen:
    """What was answered through the balancer, with the time of each answer."""

    verdicts: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    polled: list[int] = field(default_factory=list)
    ages: list[float] = field(default_factory=list)
    reporting: list[int] = field(default_factory=list)
    failed: Counter[str] = field(default_factory=Counter)

    def longest_s(self, is_good: Callable[[dict[str, Any]], bool]) -> float:
        """Between two answers that are good."""
        times = [at_s for at_s, verdict in self.verdicts if is_good(verdict)]
        return max(later - sooner for sooner, later in itertools.pairwise(times))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=2000)
    asked = parser.parse_args()
    with contextlib.ExitStack() as stack:
        enter = stack.enter_context
        receiver = enter(Receiver.started())
        house = enter(_house())
        made = enter(_stage(house.balancer))
        _channel(house, receiver)
        made.start_agents()
        made.start_job(cases.find("dataloader"), "hangs")
        hung = _until(lambda: _hung(house.balancer), "the job hangs, with its evidence")
        stack.enter_context(_played(made, asked.ranks, asked.ranks // 8, "healthy", 1e6))
        _until(lambda: _reporting(house.balancer) == asked.ranks, "all simulated ranks report")
        _until(lambda: receiver.requests, "the alert has been told")
        _restart_all(house, hung, asked.ranks, receiver)


@dataclass
class House:
    """Two servers and what they stand on."""

    url: str
    redis_url: str
    balancer: Balancer
    stack: contextlib.ExitStack
    servers: list[RunningServer] = field(default_factory=list)

    def start(self) -> RunningServer:
        folder = self.stack.enter_context(postgres.data_folder())
        settings = {
            "HANGWATCH_REDIS_URL": self.redis_url,
            "HANGWATCH_BOOTSTRAP_TOKEN": TOKEN,
            "HANGWATCH_DRAIN_S": str(DRAIN_S),
            "HANGWATCH_OUTGOING_ALLOW": "127.0.0.0/8",
            "HANGWATCH_ALLOW_ANONYMOUS": "true",
        }
        server = self.stack.enter_context(running_server.running(self.url, folder, settings))
        server.admin_token = TOKEN
        self.servers.append(server)
        self.balancer.servers = [one.url for one in self.servers]
        return server

    def stop(self, server: RunningServer) -> float:
        """Seconds from SIGTERM to its end."""
        began_s = time.monotonic()
        server.stop()
        self.servers.remove(server)
        return time.monotonic() - began_s


@contextlib.contextmanager
def _house() -> Iterator[House]:
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(postgres.server())
        redis_url = stack.enter_context(redis.server()).url
        balancer = stack.enter_context(Balancer.before())
        house = House(url, redis_url, balancer, stack)
        house.start()
        house.start()
        _until(lambda: len(balancer.ready) == 2, "both servers are ready")
        yield house


@contextlib.contextmanager
def _stage(balancer: Balancer) -> Iterator[stage.Stage]:
    """Agents and a job that know the balancer's address alone."""
    with tempfile.TemporaryDirectory(prefix="hangwatch-bench-") as folder:
        made = stage.Stage(Path(folder), client.Client, port=balancer.port, admin_token=TOKEN)
        try:
            yield made
        finally:
            made.stop()


def _channel(house: House, receiver: Receiver) -> None:
    key = f"whsec_{base64.b64encode(secrets.token_bytes(24)).decode()}"
    kept = {"url": f"{receiver.url}/all", "signing_key": key}
    body = {"name": "all", "kind": "webhook", "secrets": kept}
    with house.servers[0].client() as asking:
        answer = asking.post("/api/v1/channels", json=body)
        assert answer.status_code == 201, answer.text


def _restart_all(house: House, hung: dict[str, Any], ranks: int, receiver: Receiver) -> None:
    seen, over = Seen(), threading.Event()
    watching = [
        threading.Thread(target=watch, args=(house.balancer.url, hung["job"], seen, over))
        for watch in (_ask, _poll, _look)
    ]
    for thread in watching:
        thread.start()
    took = []
    try:
        for server in list(house.servers):
            took.append(house.stop(server))
            house.start()
            _until(lambda: len(house.balancer.ready) == 2, "both servers are ready again")
        time.sleep(AFTER_S)
    finally:
        over.set()
        for thread in watching:
            thread.join(60)
    _report(house, hung, ranks, seen, took, receiver)


def _report(
    house: House,
    hung: dict[str, Any],
    ranks: int,
    seen: Seen,
    took: list[float],
    receiver: Receiver,
) -> None:
    _say("ranks", f"{ranks:,} simulated, 4 real ones that hang")
    _say("from SIGTERM to its end", ", ".join(f"{one:.1f} s" for one in took))
    _say("verdicts asked for", f"{len(seen.verdicts)}, failed {dict(seen.failed) or 0}")
    states = Counter(verdict["state"] for _, verdict in seen.verdicts)
    _say("states of the hung job", str(dict(states)))
    same = seen.longest_s(lambda verdict: verdict["incident"] == hung["incident"])
    _say("longest time without its verdict", f"{same:.2f} s")
    _say("longest time a node was not heard", f"{max(seen.ages):.2f} s")
    _say("fewest simulated ranks reporting", f"{min(seen.reporting):,}")
    falls = sum(later < sooner for sooner, later in itertools.pairwise(seen.polled))
    _say("long polls", f"{len(seen.polled)} answers, index fell {falls} times")
    with house.servers[0].client() as asking:
        incidents = asking.get("/api/v1/incidents").json()["items"]
        told = asking.get("/api/v1/deliveries").json()["items"]
    _say("incidents", str(len(incidents)))
    abouts = Counter((one["about"], one["topic"], one["channel"]) for one in told)
    _say("deliveries", f"{len(told)}, duplicates {sum(count - 1 for count in abouts.values())}")
    _say("messages received", str(len(receiver.requests)))


def _ask(url: str, job: str, seen: Seen, over: threading.Event) -> None:
    """As many short-lived callers would: each on a connection of its own."""
    while not over.wait(0.1):
        with _counting(seen, "verdict"), _asking(url) as asking:
            found = asking.get(f"/api/v1/jobs/{job}/verdict").raise_for_status().json()
            seen.verdicts.append((time.monotonic(), found))


def _poll(url: str, job: str, seen: Seen, over: threading.Event) -> None:
    index = 0
    while not over.is_set():
        with _counting(seen, "poll"), _asking(url) as asking:
            query = {"index": index, "wait": "5s"}
            answer = asking.get(f"/api/v1/jobs/{job}/verdict", params=query)
            index = answer.raise_for_status().json()["index"]
            seen.polled.append(index)


def _look(url: str, _job: str, seen: Seen, over: threading.Event) -> None:
    while not over.wait(0.5):
        with _counting(seen, "nodes"), _asking(url) as asking:
            nodes = asking.get("/api/v1/nodes", params={"limit": 1000}).raise_for_status().json()
            seen.ages.append(max(node["age_s"] for node in nodes["items"]))
            jobs = asking.get("/api/v1/jobs").raise_for_status().json()["items"]
            seen.reporting += [one["reporting"] for one in jobs if one["world_size"] > 4]


@contextlib.contextmanager
def _counting(seen: Seen, what: str) -> Iterator[None]:
    try:
        yield
    except httpx.HTTPError as error:
        seen.failed[f"{what}: {type(error).__name__}"] += 1


def _asking(url: str) -> httpx.Client:
    headers = {"authorization": f"Bearer {TOKEN}"}
    return httpx.Client(base_url=url, headers=headers, timeout=20, trust_env=False)


def _hung(balancer: Balancer) -> dict[str, Any] | None:
    for job in _jobs(balancer):
        verdict: dict[str, Any] = job["verdict"]
        if verdict["state"] == "hung" and verdict["action"]["evidence_stored"]:
            return verdict
    return None


def _reporting(balancer: Balancer) -> int:
    return max((job["reporting"] for job in _jobs(balancer)), default=0)


def _jobs(balancer: Balancer) -> list[dict[str, Any]]:
    try:
        with _asking(balancer.url) as asking:
            found: list[dict[str, Any]] = asking.get("/api/v1/jobs").json()["items"]
            return found
    except (httpx.HTTPError, ValueError, KeyError):
        return []


def _until(is_done: Callable[[], Any], what: str) -> Any:
    end_s = time.monotonic() + LONGEST_S
    while not (found := is_done()):
        if time.monotonic() > end_s:
            raise SystemExit(f"not within {LONGEST_S:.0f} s: {what}")
        time.sleep(0.25)
    return found


def _say(what: str, text: str) -> None:
    print(f"{what:<36} {text}", flush=True)


if __name__ == "__main__":
    main()
