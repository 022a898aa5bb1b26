"""Where real processes wait: the agent's captures with the real py-spy, read by the server."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.agent import conftest as make
from tests.integration.agent.conftest import run_dir, start  # noqa: F401 (fixtures)

from hangwatch_agent import permissions, process, wire
from hangwatch_agent.captures import Captures
from hangwatch_agent.node import Node
from hangwatch_agent.stacks import Stacks
from hangwatch_server import stacks
from hangwatch_server.model import Activity, StackFacts

PROGRAM = """
import fcntl, multiprocessing, socket, subprocess, sys, tempfile, threading, time
from concurrent.futures import ThreadPoolExecutor


class Cache:
    def __init__(self):
        self.lock = threading.Lock()

    def flush(self):
        with self.lock:
            write_out()

    def get(self):
        with self.lock:
            return None


def write_out():
    time.sleep(600)


def wait_for_work(queue=None):
    time.sleep(600)


def burn():
    while True:
        sum(range(1000))


def run_program():
    subprocess.run(["sleep", "600"])


def queue_of_fork():
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    context.Process(target=wait_for_work, args=(queue,), daemon=True).start()
    queue.get()


def join_of_spawn():
    child = multiprocessing.get_context("spawn").Process(target=wait_for_work, daemon=True)
    child.start()
    child.join()


def lock_of_class():
    cache = Cache()
    threading.Thread(target=cache.flush, name="writer", daemon=True).start()
    time.sleep(0.2)
    cache.get()


def future_of_busy_thread():
    ThreadPoolExecutor(1).submit(burn).result()


def file_lock():
    name = tempfile.NamedTemporaryFile().name
    with open(name, "w") as mine, open(name, "w") as again:
        fcntl.flock(mine, fcntl.LOCK_EX)
        fcntl.flock(again, fcntl.LOCK_EX)


def network():
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).recv(1)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
"""


class Watched:
    """One real rank and what captures of it show."""

    def __init__(self, node: Node) -> None:
        self.node = node
        proc = process.default_proc()
        reader = Stacks(proc, concurrency=2, timeout_s=90, py_spy=permissions.find_py_spy())
        self._captures = Captures(node, reader)

    def facts(self) -> StackFacts | None:
        make.look(self.node)
        parts: list[wire.CapturePart] = []

        async def deliver(part: wire.CapturePart) -> None:
            parts.append(part)

        command = wire.TakeCapture(capture="c", targets=(wire.Target(launch="run:job", rank=0),))
        asyncio.run(self._captures.take(command, deliver))
        return stacks.facts([stacks.Sample(part, taken_s=0.0, capture="c") for part in parts], 0.0)


@pytest.mark.parametrize(
    ("function", "activity", "says"),
    [
        ("run_program", Activity.USER_CODE, "(sleep) asleep in hrtimer_nanosleep"),
        ("queue_of_fork", Activity.LOCK, "in wait_for_work"),
        ("join_of_spawn", Activity.USER_CODE, "in wait_for_work"),
        (
            "lock_of_class",
            Activity.LOCK,
            "thread 'writer' seems to hold it at program.py:12 in flush",
        ),
        ("future_of_busy_thread", Activity.LOCK, "in burn"),
        ("file_lock", Activity.LOCK, "waits for a file lock"),
        ("network", Activity.USER_CODE, "waits for the network"),
    ],
)
def test_place_where_a_rank_truly_waits_is_named(
    function: str,
    activity: Activity,
    says: str,
    tmp_path: Path,
    run_dir: Path,  # noqa: F811
    start: Callable[..., subprocess.Popen[bytes]],  # noqa: F811
) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    rank = start(str(program), function)
    make.write_record(run_dir, rank.pid)
    watched = Watched(make.node_of(run_dir))

    def told() -> StackFacts | None:
        facts = watched.facts()
        return facts if facts is not None and says in facts.detail else None

    facts = make.wait_for(told, f"{function} is told by {says!r}")

    assert facts.activity is activity
    assert facts.where.endswith(f"in {'get' if function == 'lock_of_class' else function}")
    # A child that has only just started was at work, and so may be called so still.
    assert facts.is_served or function != "future_of_busy_thread"
