"""Ranks of torch.multiprocessing.spawn without the probe, found by real stacks of a real job."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.agent import conftest as make

from hangwatch_agent import permissions, process, spawned, wire
from hangwatch_agent.captures import Captures
from hangwatch_agent.sampling import Sampler
from hangwatch_agent.stacks import Stacks

PROGRAM = """
import sys, time
import torch.distributed as dist
import torch.multiprocessing as mp

def work(rank, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    if rank == 1:
        time.sleep(600)
    dist.barrier()

if __name__ == "__main__":
    mp.spawn(work, args=(sys.argv[1],), nprocs=2)
"""


def test_spawned_ranks_are_found_and_looked_at(
    tmp_path: Path,
    run_dir: Path,
    start: Callable[..., subprocess.Popen[bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spawned, "LOOK_AGAIN_S", 1.0)
    program = tmp_path / "train.py"
    program.write_text(PROGRAM)
    job = start(str(program), str(tmp_path / "store"))
    node = make.node_of(run_dir, adopt=True)
    found: dict[int, set[str]] = {}

    def note(part: wire.CapturePart) -> None:
        names = {frame.name for frame in part.stacks[0].threads[0].frames}
        found.setdefault(part.rank, set()).update(names)

    proc = process.default_proc()
    stacks = Stacks(proc, concurrency=1, timeout_s=90, py_spy=permissions.find_py_spy())
    sampler = Sampler(node, Captures(node, stacks), note)

    def are_seen() -> bool:
        make.look(node)
        asyncio.run(sampler.turn(time.monotonic()))
        return "barrier" in found.get(0, set()) and "work" in found.get(1, set())

    make.wait_for(are_seen, "both ranks are seen where they are")

    own = set(proc.children(job.pid, of_all_threads=True))  # other tests' ranks may run beside them
    beats = [item.beat for item in node.translate(time.monotonic_ns()) if item.beat.pid in own]
    assert sorted((beat.rank, beat.world_size, beat.script) for beat in beats) == [
        (0, 2, "train.py"),
        (1, 2, "train.py"),
    ]
    assert {beat.depth for beat in beats} == {wire.Depth.BARE}
