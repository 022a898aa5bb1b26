"""An agent without a node: it speaks the real wire over a real WebSocket, of made-up ranks.

Two shapes of a four-rank job: rank 2 sleeps and never enters an all_reduce, or calls another op.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import websockets
from websockets.asyncio.client import ClientConnection, connect

from hangwatch_agent import wire
from hangwatch_server.errors import NotFoundError

KEY = "launch-1"
WORLD = "0-3"
GID = wire.gid_of(KEY, "default_pg", WORLD, 1)
CULPRIT = 2
GROUP = wire.GroupInfo(
    gid=GID, launch=KEY, name="default_pg", description="", backend="gloo", ranks=WORLD
)


class TurnedAwayError(NotFoundError):
    """The server takes no agent of this node now; `until` asks again."""


@dataclass
class Job:
    """What the synthetic ranks do, shared by the agents of all nodes."""

    clock_s: Callable[[], float]
    seq: int = 5
    stalled_at_s: float | None = None
    odd_op: str = ""  # rank 2 calls this in place of all_reduce; "" = it calls nothing
    start_ticks: int = 100
    restart: int = 0
    processes_gone: set[int] = field(default_factory=set)

    def stall(self) -> None:
        self.stalled_at_s = self.clock_s()

    def progress(self) -> None:
        self.seq += 1
        self.stalled_at_s = None

    def beat(self, rank: int) -> wire.RankBeat:
        is_gone = rank in self.processes_gone
        return wire.RankBeat(
            launch=KEY,
            rank=rank,
            local_rank=rank,
            world_size=4,
            pid=1000 + rank,
            start_ticks=self.start_ticks,
            process=wire.ProcessFacts(
                state="gone" if is_gone else "S", main_cpu_s=1.0, main_cpu_share=0.0, io_bytes=10
            ),
            depth=wire.Depth.PROBE,
            is_rank_certain=True,
            restart=self.restart,
            script="train.py",
            beat_age_s=0.2,
            is_initialised=True,
            groups=(self._group(rank),),
        )

    def _group(self, rank: int) -> wire.GroupBeat:
        if self.stalled_at_s is None:
            return wire.GroupBeat(gid=GID, counter=self.seq, stall_s=0.1, seq=self.seq)
        stall_s = self.clock_s() - self.stalled_at_s
        is_absent = rank == CULPRIT and not self.odd_op
        done = wire.Entry(seq=self.seq, op="all_reduce", is_retired=True)
        op = self.odd_op if rank == CULPRIT else "all_reduce"
        front = wire.Entry(seq=self.seq + 1, op=op, is_retired=False, input_sizes=((4,),))
        entries = (done,) if is_absent else (done, front)
        newest = entries[-1].seq
        return wire.GroupBeat(
            gid=GID,
            counter=newest,
            stall_s=stall_s,
            seq=newest,
            entries=entries,
            entries_age_s=min(stall_s, 1.0),
            are_entries_current=True,
        )


def stacks_of(rank: int) -> tuple[wire.ProcessStacks, ...]:
    """What py-spy would say: the culprit sleeps in its own code, the others wait in all_reduce."""
    own = wire.Frame(name="main", file="train.py", line=20)
    if rank == CULPRIT:
        inner = (wire.Frame(name="prepare", file="train.py", line=88),)
    else:
        torch = "/usr/lib/python3/site-packages/torch/distributed/"
        inner = (
            wire.Frame(name="all_reduce", file=torch + "distributed_c10d.py", line=3000),
            wire.Frame(name="wrapper", file=torch + "c10d_logger.py", line=83),
        )
    thread = wire.Thread(
        pid=1000 + rank, thread_id=1000 + rank, name="MainThread", frames=(*inner, own)
    )
    return (wire.ProcessStacks(pid=1000 + rank, role="main", threads=(thread,)),)


class Agent:
    """One node's connection."""

    def __init__(self, line: ClientConnection, node: str, job: Job, ranks: Iterable[int]) -> None:
        self.line, self.node, self.job, self.ranks = line, node, job, tuple(ranks)
        self.commands: list[wire.TakeCapture] = []
        self.stored: list[wire.Stored] = []
        self.refused: list[wire.Refused] = []
        self._number = 0

    async def beat(self) -> None:
        """Send one heartbeat."""
        self._number += 1
        heartbeat = wire.Heartbeat(
            number=self._number,
            launches=(wire.Launch(key=KEY, name="gpt", restart=self.job.restart),),
            ranks=tuple(self.job.beat(rank) for rank in self.ranks),
            groups=(GROUP,),
            is_full=self._number == 1,
        )
        await self.line.send(wire.encode(heartbeat))

    async def beat_for_ever(self, every_s: float) -> None:
        while True:
            await self.beat()
            await asyncio.sleep(every_s)

    async def obey(self) -> None:
        """Answer commands until the connection ends."""
        try:
            async for data in self.line:
                assert isinstance(data, bytes)
                frame = wire.decode_from_server(data)
                if isinstance(frame, wire.TakeCapture):
                    self.commands.append(frame)
                    for target in frame.targets:
                        await self.line.send(wire.encode(part_of(frame.capture, target.rank)))
                elif isinstance(frame, wire.Stored):
                    self.stored.append(frame)
                elif isinstance(frame, wire.Refused):
                    self.refused.append(frame)
        except websockets.ConnectionClosed:
            return


def part_of(capture: str, rank: int) -> wire.CapturePart:
    return wire.CapturePart(
        capture=capture, launch=KEY, rank=rank, pid=1000 + rank, age_s=0.0, stacks=stacks_of(rank)
    )


def hello(node: str) -> wire.Hello:
    return wire.Hello(protocol=wire.PROTOCOL, node=node, version="0.1.0")


@asynccontextmanager
async def dialled(url: str, token: str) -> AsyncIterator[ClientConnection]:
    """A connection that has not said hello yet."""
    headers = {"Authorization": f"Bearer {token}"}
    async with connect(
        url, additional_headers=headers, max_size=None, proxy=None, open_timeout=60
    ) as line:
        yield line


async def answer(line: ClientConnection) -> wire.ServerFrame:
    """The server's next frame."""
    async with asyncio.timeout(60):
        data = await line.recv()
    assert isinstance(data, bytes)
    return wire.decode_from_server(data)


@asynccontextmanager
async def agent(
    url: str, token: str, node: str, job: Job, ranks: Iterable[int], every_s: float = 0.1
) -> AsyncIterator[Agent]:
    """A connected agent that sends heartbeats and obeys commands."""
    async with dialled(url, token) as line:
        await line.send(wire.encode(hello(node)))
        welcome = await answer(line)
        if isinstance(welcome, wire.Refused):
            raise TurnedAwayError(welcome.reason)
        assert isinstance(welcome, wire.Welcome), welcome
        made = Agent(line, node, job, ranks)
        tasks = [
            asyncio.create_task(made.obey()),
            asyncio.create_task(_beats(made, every_s)),
        ]
        try:
            yield made
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _beats(made: Agent, every_s: float) -> None:
    try:
        await made.beat_for_ever(every_s)
    except websockets.ConnectionClosed:
        return
