"""What the node service costs: CPU share and memory of a real agent that follows 8 ranks.

The ranks are real processes that write real records with the probe's own writer at 1 Hz, as a
training step would move them; the server is a WebSocket endpoint that accepts every frame. Run:

    python bench/agent_cost.py [--ranks 8] [--children 0] [--seconds 60]

`--children` gives each rank so many idle child processes, as a data loader does. It prints a table;
the bars are 1 % of one core and 60 MB of resident memory. The share includes everything the agent
does in steady state; start-up is left out, since it is paid once per boot.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from websockets.asyncio.server import ServerConnection, serve

from hangwatch_agent import wire
from hangwatch_agent.probe import record

GROUPS = ("default_pg", "dp", "tp")
WARM_UP_S = 8.0
BAR_CPU_PERCENT = 1.0
BAR_RSS_MB = 60.0


def payload(rank: int, world: int, beat: int) -> dict[str, object]:
    """A record as the probe writes it for a rank in three groups, eight entries in each."""
    now_ns = time.monotonic_ns()
    entry = {"op": "all_reduce", "retired": True, "input_sizes": [[1024, 1024]]}
    groups = [
        {
            "name": str(index),
            "description": name,
            "backend": "gloo",
            "ranks": f"0-{world - 1}",
            "counter": beat * 10,
            "moved_ns": now_ns,
            "entries": [{**entry, "seq": seq} for seq in range(8)],
            "dumped_ns": now_ns,
            "dumped_counter": beat * 10 - 1,
        }
        for index, name in enumerate(GROUPS)
    ]
    return {
        "beat": beat,
        "at_ns": now_ns,
        "pid": os.getpid(),
        "rank": rank,
        "world_size": world,
        "local_rank": rank,
        "certain": True,
        "initialised": True,
        "script": "bench.py",
        "environment": {"HANGWATCH_JOB": "bench", "HANGWATCH_LAUNCH_ID": "bench"},
        "groups": groups,
    }


def be_a_rank(run_dir: str, rank: int, world: int, children: int) -> None:
    """Write a record once a second until killed."""
    for _ in range(children):
        subprocess.Popen(["sleep", "infinity"])
    pid = os.getpid()
    writer = record.Writer(run_dir, pid, record.start_ticks(pid))
    beat = 0
    while True:
        beat += 1
        writer.write(json.dumps(payload(rank, world, beat)).encode())
        time.sleep(1.0)


class Sink:
    """Accepts an agent and counts what it says."""

    def __init__(self) -> None:
        self.heartbeats = 0
        self.ranks = 0
        self.bytes = 0

    async def handle(self, socket: ServerConnection) -> None:
        async for data in socket:
            assert isinstance(data, bytes)
            frame = wire.decode_from_agent(data)
            if isinstance(frame, wire.Hello):
                await socket.send(wire.encode(wire.Welcome(protocol=1, version="bench")))
            elif isinstance(frame, wire.Heartbeat):
                self.heartbeats += 1
                self.ranks = len(frame.ranks)
                self.bytes += len(data)


@contextlib.contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A Python process of its own group, ended with the block."""
    process = subprocess.Popen([sys.executable, *arguments], start_new_session=True)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise LookupError(f"process {pid} has no VmRSS")


async def measure(ranks: int, children: int, seconds: float) -> None:
    sink = Sink()
    with (
        tempfile.TemporaryDirectory(prefix="hangwatch-bench-") as folder,
        contextlib.ExitStack() as stack,
    ):
        async with serve(sink.handle, "127.0.0.1", 0, max_size=wire.MAX_FRAME_BYTES) as server:
            port = next(iter(server.sockets)).getsockname()[1]
            for rank in range(ranks):
                numbers = f"{folder},{rank},{ranks},{children}"
                stack.enter_context(started(__file__, "--be", numbers))
            agent = stack.enter_context(started("-c", _AGENT, f"http://127.0.0.1:{port}", folder))
            await asyncio.sleep(WARM_UP_S)
            before_s, at_s = cpu_s(agent.pid), time.monotonic()
            await asyncio.sleep(seconds)
            share = 100 * (cpu_s(agent.pid) - before_s) / (time.monotonic() - at_s)
            report(sink, share, rss_mb(agent.pid))


def report(sink: Sink, share: float, rss: float) -> None:
    frame = sink.bytes / max(1, sink.heartbeats)
    print(f"{'ranks followed':<28}{sink.ranks:>10}")
    print(f"{'heartbeats received':<28}{sink.heartbeats:>10}")
    print(f"{'bytes per heartbeat':<28}{frame:>10.0f}")
    print(f"{'CPU, % of one core':<28}{share:>10.2f}   bar {BAR_CPU_PERCENT}")
    print(f"{'resident memory, MB':<28}{rss:>10.1f}   bar {BAR_RSS_MB}")


_AGENT = """
import asyncio, sys
from pathlib import Path
from hangwatch_agent import service
from hangwatch_agent.settings import AgentSettings
asyncio.run(service.run(AgentSettings(server=sys.argv[1], run_dir=Path(sys.argv[2]), node="bench")))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--children", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--be", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.be:
        folder, rank, world, children = arguments.be.split(",")
        be_a_rank(folder, int(rank), int(world), int(children))
    asyncio.run(measure(arguments.ranks, arguments.children, arguments.seconds))


if __name__ == "__main__":
    main()
