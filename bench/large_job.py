"""A large job over the wire: python bench/large_job.py [--ranks 4096] [--fault dataloader].

`hangwatch simulate` plays all agents of the job against a real server with its own Postgres, here
on one machine with it, so that both share its cores. Meanwhile the API is asked four times a second
and the job's page stands open in Chromium. Prints how soon the verdict is in and whether it is
right, how long the API took, and what the page's stream sends while the job is healthy.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from playwright.sync_api import Page, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.page_watch import Stream, drawn, watch
from tests.support.browser import launch

from hangwatch_agent import client
from hangwatch_server import ranges
from hangwatch_server.demo import processes, stage
from hangwatch_server.demo.main import open_stage
from hangwatch_server.simulate import faults
from hangwatch_server.simulate.faults import Fault

ASK_EVERY_S = 0.25
CALM_S = 20.0
LONGEST_S = 400.0
KB = 1000


@dataclass(slots=True)
class Asked:
    """What the API answered, and how long it took, by what the job was at that time."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    failed: int = 0
    job: dict[str, Any] = field(default_factory=dict)
    first: dict[str, float] = field(default_factory=dict)  # state -> stalled_s as first seen

    def note(self, took_s: float, items: list[dict[str, Any]]) -> None:
        self.job = items[0] if items else {}
        state = self.job.get("state", "none")
        is_whole = bool(items) and self.job["reporting"] == self.job["world_size"]
        self.seconds.setdefault(state if is_whole else "arriving", []).append(took_s)
        if items:
            self.first.setdefault(state, self.job["verdict"]["stalled_s"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=4096)
    parser.add_argument("--nodes", type=int)
    parser.add_argument("--fault", choices=list(Fault), default=Fault.DATALOADER)
    parser.add_argument("--fault-after", type=float, default=75.0, metavar="S")
    asked = parser.parse_args()
    nodes = asked.nodes or asked.ranks // 8
    with open_stage(client.Client) as made, sync_playwright() as playwright:
        made.start_server()
        with _played(made, asked.ranks, nodes, asked.fault, asked.fault_after):
            page = launch(playwright).new_page(viewport={"width": 1440, "height": 900})
            _watch(made, page, asked.ranks, nodes, Fault(asked.fault))


def _watch(made: stage.Stage, page: Page, ranks: int, nodes: int, fault: Fault) -> None:
    found, over = Asked(), threading.Event()
    asking = threading.Thread(target=_ask, args=(made, found, over), daemon=True)
    asking.start()
    try:
        _until(lambda: found.job.get("reporting") == ranks)
        _say("ranks, nodes", f"{ranks:,} on {nodes:,}")
        used = _used_s(made)
        _calm_page(made, page, found.job["id"])
        _say("server, job healthy and page open", f"{(_used_s(made) - used) / CALM_S:.2f} cores")
        if fault is not Fault.HEALTHY:
            _verdict(made, found, faults.scene(fault, ranks, nodes))
    finally:
        over.set()
        asking.join(30)
    for state, took in found.seconds.items():
        _say(f"API while {state}", _spread(took))
    _say("requests that failed", str(found.failed))


def _calm_page(made: stage.Stage, page: Page, job: str) -> None:
    stream = Stream(page)
    watch(page)
    server_s, drawn_s, size_kb = drawn(page, f"{made.url}/jobs/{job}")
    _say("job page: answered, then drawn", f"{server_s:.2f} s, {drawn_s:.2f} s (bar 1 s in all)")
    _say("job page, compressed", f"{size_kb:.0f} kB (bar 150 kB)")
    page.wait_for_timeout(5_000)  # the stream's first message says all once more
    stream.bytes = 0
    page.wait_for_timeout(CALM_S * 1000)
    _say("its stream", f"{stream.bytes / KB / CALM_S:.2f} kB/s (bar 5 kB/s)")


def _verdict(made: stage.Stage, found: Asked, scene: faults.Scene) -> None:
    _until(lambda: found.job.get("state") == "hung")
    used, since = _used_s(made), time.monotonic()
    time.sleep(CALM_S / 2)
    share = (_used_s(made) - used) / (time.monotonic() - since)
    verdict = found.job["verdict"]
    is_right = (verdict["kind"], verdict["culprit_ranks"]) == (
        scene.kind,
        ranges.text(scene.culprits),
    )
    for state in ("suspected", "hung"):
        if state in found.first:
            _say(f"stalled when first seen {state}", f"{found.first[state]:.1f} s")
    _say("verdict", f"{verdict['kind']}, {'right' if is_right else 'WRONG'}: {verdict['summary']}")
    _say("server, job hung", f"{share:.2f} cores")


@contextlib.contextmanager
def _played(
    made: stage.Stage, ranks: int, nodes: int, fault: str, after_s: float
) -> Iterator[None]:
    command = [*stage.hangwatch(), "simulate", "--server", made.url, "--fault", fault]
    command += ["--ranks", str(ranks), "--nodes", str(nodes), "--fault-after", str(after_s)]
    environment = {
        "HANGWATCH_TOKEN": made.admin_token,
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }
    player: subprocess.Popen[bytes] = processes.start(command, environment, made.log("simulate"))
    try:
        yield
    except Exception:
        print(made.tail("simulate"), made.tail("server"), sep="\n", file=sys.stderr)
        raise
    finally:
        processes.stop(player)


def _ask(made: stage.Stage, found: Asked, over: threading.Event) -> None:
    """As a scheduler or a person's script would."""
    asking = made.client
    while not over.wait(ASK_EVERY_S):
        started_s = time.monotonic()
        try:
            items = asking.get("/jobs", limit=1)["items"]
        except OSError:
            found.failed += 1
        else:
            found.note(time.monotonic() - started_s, items)


def _until(is_done: Callable[[], bool]) -> None:
    end_s = time.monotonic() + LONGEST_S
    while not is_done():
        if time.monotonic() > end_s:
            raise SystemExit(f"not within {LONGEST_S:.0f} s")
        time.sleep(ASK_EVERY_S)


def _used_s(made: stage.Stage) -> float:
    """CPU seconds of the server so far, without its Postgres."""
    assert made.server is not None
    times = psutil.Process(made.server.pid).cpu_times()
    return float(times.user + times.system)


def _spread(took: list[float]) -> str:
    ordered = sorted(took)
    at = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    return (
        f"median {statistics.median(ordered) * 1000:.0f} ms, 95 % within {at * 1000:.0f} ms, "
        f"slowest {ordered[-1] * 1000:.0f} ms of {len(ordered)}"
    )


def _say(what: str, text: str) -> None:
    print(f"{what:<36} {text}", flush=True)


if __name__ == "__main__":
    main()
