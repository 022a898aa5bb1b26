"""A real WebSocket endpoint that speaks the wire, real records, processes that are ended again."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import pytest
from websockets.asyncio.server import Server, ServerConnection, serve

from hangwatch_agent import identity, process, wire
from hangwatch_agent.node import Node
from hangwatch_agent.probe import record

NOBODY = 65534
DEADLINE_S = 120.0
T = TypeVar("T")
F = TypeVar("F", wire.Hello, wire.Heartbeat, wire.CapturePart, wire.Samples)
SLEEPER = "import sys; print(flush=True); sys.stdin.read()"


class Sink:
    """Keeps every frame of an agent; welcomes it, and acknowledges parts when told to."""

    def __init__(self) -> None:
        self.frames: list[list[wire.AgentFrame]] = []  # per connection
        self.sockets: list[ServerConnection] = []
        self.tokens: list[str | None] = []
        self.acknowledges = True
        self.takes_samples = True
        self.keeps_entries = False
        self.refusal: wire.Refused | None = None
        self._server: Server | None = None
        self._changed = asyncio.Event()

    async def open(self, port: int = 0) -> int:
        self._server = await serve(self._handle, "127.0.0.1", port, max_size=wire.MAX_FRAME_BYTES)
        bound: int = next(iter(self._server.sockets)).getsockname()[1]
        return bound

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def send(self, frame: wire.ServerFrame) -> None:
        await self.sockets[-1].send(wire.encode(frame))

    async def until(self, question: Callable[[], T | None]) -> T:
        """Ask after each frame until there is an answer."""
        async with asyncio.timeout(DEADLINE_S):
            while not (answer := question()):
                self._changed.clear()
                await self._changed.wait()
        return answer

    def last(self, kind: type[F]) -> F | None:
        """The newest frame of a kind on the newest connection."""
        frames = self.frames[-1] if self.frames else []
        return next((frame for frame in reversed(frames) if isinstance(frame, kind)), None)

    async def _handle(self, socket: ServerConnection) -> None:
        mine: list[wire.AgentFrame] = []
        self.frames.append(mine)
        self.sockets.append(socket)
        assert socket.request is not None
        self.tokens.append(socket.request.headers.get("Authorization"))
        with contextlib.suppress(OSError):
            async for data in socket:
                assert isinstance(data, bytes)
                frame = wire.decode_from_agent(data)
                mine.append(frame)
                await self._answer(socket, frame)
                self._changed.set()

    async def _answer(self, socket: ServerConnection, frame: wire.AgentFrame) -> None:
        match frame:
            case wire.Hello() if self.refusal is not None:
                await socket.send(wire.encode(self.refusal))
                await socket.close()
            case wire.Hello():
                await socket.send(
                    wire.encode(
                        wire.Welcome(
                            protocol=1,
                            version="t",
                            interval_s=0.3,
                            takes_samples=self.takes_samples,
                            keeps_entries=self.keeps_entries,
                        )
                    )
                )
            case wire.CapturePart() if self.acknowledges:
                stored = wire.Stored(capture=frame.capture, launch=frame.launch, rank=frame.rank)
                await socket.send(wire.encode(stored))
            case _:
                pass


@pytest.fixture
async def sink(anyio_backend: str) -> AsyncIterator[Sink]:
    found = Sink()
    yield found
    await found.close()


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start Python with arguments; whatever was started is ended with the test."""
    begun: list[subprocess.Popen[bytes]] = []

    def begin(*arguments: str, **environ: str) -> subprocess.Popen[bytes]:
        started = subprocess.Popen(
            [sys.executable, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **environ},
            start_new_session=True,
        )
        begun.append(started)
        return started

    yield begin
    for started in begun:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)
        started.communicate()


@pytest.fixture
def rank_process(start: Callable[..., subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
    """A Python process that runs and waits."""
    started = start("-c", SLEEPER)
    assert started.stdout is not None
    started.stdout.readline()
    return started


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    return folder


def write_record(
    run_dir: Path,
    pid: int,
    *,
    ticks: int | None = None,
    rank: int = 0,
    launch: str = "job",
    environment: Mapping[str, str] | None = None,
) -> Path:
    """A record as the probe of process `pid` would write it."""
    start_ticks = record.start_ticks(pid) if ticks is None else ticks
    now_ns = time.monotonic_ns()
    groups = [{"name": "0", "ranks": "0-1", "counter": 3, "moved_ns": now_ns}]
    payload = {
        "beat": 1,
        "at_ns": now_ns,
        "pid": pid,
        "rank": rank,
        "world_size": 2,
        "local_rank": rank,
        "certain": True,
        "initialised": True,
        "environment": environment or {"HANGWATCH_LAUNCH_ID": launch},
        "groups": groups,
    }
    writer = record.Writer(str(run_dir), pid, start_ticks)
    writer.write(json.dumps(payload).encode())
    return Path(writer.path)


def node_of(run_dir: Path, *, adopt: bool = False) -> Node:
    return Node(
        process.default_proc(),
        run_dir,
        adopt=adopt,
        boot_id=identity.boot_id(),
        resolve=identity.resolve,
    )


def look(node: Node) -> None:
    """One scan and one poll, as the service makes them."""
    node.scan(time.monotonic())
    node.poll(time.monotonic(), time.monotonic_ns())


def wait_for(question: Callable[[], T | None], what: str, deadline_s: float = DEADLINE_S) -> T:
    end = time.monotonic() + deadline_s
    while time.monotonic() < end:
        if answer := question():
            return answer
        time.sleep(0.02)
    raise AssertionError(f"did not happen within {deadline_s:g} s: {what}")
