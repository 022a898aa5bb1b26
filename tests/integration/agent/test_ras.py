"""The agent and a process that looks like a rank of an NCCL job, down to its RAS socket."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hangwatch_agent import process
from hangwatch_agent.node import Node
from hangwatch_agent.ras import Collector, collector

ROOT = Path(__file__).resolve().parents[3]
# The rank listens as NCCL's own thread does, and then trains for a while.
RANK = """
import asyncio, os, sys
from tests.support.fake_ras import FakeRank, FakeRas, communicator, status_json

async def train():
    me = FakeRank(rank=0, pid=os.getpid(), counts=(0, 0, 0, 0, 7))
    other = FakeRank(rank=1, pid=1, host="10.0.0.2", counts=(0, 0, 0, 0, 6))
    async with FakeRas(answer=status_json(communicator([me, other]))).listening() as endpoint:
        print(endpoint.port, flush=True)
        await asyncio.sleep(600)

asyncio.run(train())
"""


@pytest.fixture
def free_port() -> int:
    """A port that nobody binds by chance before the rank does."""
    while True:
        port = 20_000 + secrets.randbelow(10_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


@contextlib.contextmanager
def rank_process(port: int) -> Iterator[subprocess.Popen[str]]:
    environ = {
        **os.environ,
        "RANK": "0",
        "LOCAL_RANK": "0",
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29555",
        "NCCL_RAS_ADDR": f"127.0.0.1:{port}",
        "PYTHONPATH": f"{ROOT}:{ROOT / 'agent'}",
    }
    text = RANK.replace(".listening()", f".listening(port={port})")
    rank = subprocess.Popen(
        [sys.executable, "-c", text], env=environ, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        yield rank
    finally:
        rank.kill()
        rank.wait()
        if rank.stdout is not None:
            rank.stdout.close()


def test_agent_finds_the_rank_and_asks_its_ras(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free_port: int
) -> None:
    monkeypatch.setattr(collector, "TICK_S", 0.05)
    with rank_process(free_port) as rank:
        assert rank.stdout is not None
        assert rank.stdout.readline().strip() == str(free_port)
        proc = process.default_proc()
        node = Node(proc, tmp_path, adopt=True, boot_id="b", resolve=str)
        node.scan(time.monotonic())
        node.poll(time.monotonic(), time.monotonic_ns())
        mine = [item for item in node.tracked if item.identity.pid == rank.pid]
        asking = Collector(proc, process.PROC, lambda: mine, interval_s=0.1)

        async def asked() -> None:
            task = asyncio.create_task(asking.run())
            async with asyncio.timeout(90):
                while not asking.reports():  # noqa: ASYNC110 - what it waits for tells nobody
                    await asyncio.sleep(0.05)
            task.cancel()

        asyncio.run(asked())

    (report,) = asking.reports()
    assert report.version == "2.30.7"
    assert [member.counts[-1] for member in report.communicators[0].members] == [7, 6]
