"""What a rank's heartbeat costs on each board: python bench/boards.py [--ranks 10000] [--rounds 5].

The board in memory takes in the frames of all nodes as `ingest` does. Over Redis the same frames
are also told by one server (packed, published) and taken in by another, through a real redis-server
that the program starts. CPU milliseconds per 10,000 rank updates: of each server's own process, and
of redis-server as it counts them; the least of some rounds. Frames are of a job that goes on, with
new entries in each beat, and of one that stands, whose agents leave out what they have said.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench import arrivals
from tests.support import redis as support
from tests.support.over_redis import SetClock
from tests.support.redis import RedisServer
from tests.synthetic import damage, large

from hangwatch_agent import wire
from hangwatch_server.board import MemoryBoard, RelayedBoard
from hangwatch_server.bus import RelayedBus
from hangwatch_server.ingest import bounds
from hangwatch_server.ingest.hub import Hub
from hangwatch_server.relay import letters
from hangwatch_server.relay.incoming import Incoming
from hangwatch_server.relay.line import Ears, Line
from hangwatch_server.relay.outbox import Outbox
from hangwatch_server.relay.peers import Peers
from hangwatch_server.simulate.telemetry import Shape

PER = 10_000
Frames = Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU milliseconds and bytes, of all ranks once."""

    memory_ms: float
    telling_ms: float
    hearing_ms: float
    redis_ms: float
    frames_bytes: int
    packed_bytes: int


class Servers:
    """One that is told by agents and tells, one that hears, and the line between them."""

    def __init__(self, url: str, nodes: list[str]) -> None:
        clock = SetClock()
        self.memory, self.there = MemoryBoard(), RelayedBoard()
        self.outbox, self.peers = Outbox(clock.monotonic_s), Peers(5.0)
        self.outbox.open()
        self.peers.called("one", 0, 0.0)
        bus = RelayedBus(lambda topic, data: None)
        self.incoming = Incoming("two", self.peers, self.outbox, self.there, bus, Hub(), clock)
        self.line, self.number = Line(url, "bench"), 0
        for node in nodes:
            hello = wire.Hello(protocol=wire.PROTOCOL, node=node, version="")
            self.memory.hello(node, hello, 0.0)
            self.there.hello(node, hello, 0.0)
            self.peers.holds("one", node)

    def take(self, frames: Frames) -> None:
        """As `ingest.socket` takes in one frame of each node."""
        for node, data in frames.items():
            frame = wire.decode_from_agent(data)
            assert isinstance(frame, wire.Heartbeat)
            bounds.check_heartbeat(frame)
            self.memory.apply(node, frame, 0.0)

    async def tell(self, frames: Frames) -> int:
        """Tell all frames; returns the bytes of the batches."""
        size = 0
        for node, data in frames.items():
            self.outbox.put(letters.Beat(node, data))
        while taken := self.outbox.take():
            self.number += 1
            batch = letters.encode(letters.Batch("one", self.number, taken))
            packed = letters.pack(batch)
            size += len(packed)
            await self.line.publish([("from:one", packed)])
        return size

    async def hear(self, ears: Ears) -> None:
        """Take in what was told."""
        peer = self.peers.find("one")
        assert peer is not None
        while peer.number < self.number:
            message = await ears.next(10)
            if message is None:
                continue
            batch = letters.batch(message[1])
            self.peers.batch("one", batch.number)
            for data in batch.letters:
                assert await self.incoming.take(peer, data)


def measure(redis: RedisServer, ranks: int, rounds: int) -> dict[str, Cost]:
    """Of frames with new entries, and of frames that leave out what was said before."""
    snapshot = damage.none(large.stopped(ranks, Shape.GLOO), 0, Random()).later
    beats = [view.beat for view in snapshot.ranks.values() if view.beat is not None]
    whole, kept = arrivals.frames(beats)
    return asyncio.run(_measure(redis, {"new entries": whole, "kept entries": kept}, rounds))


async def _measure(redis: RedisServer, kinds: Mapping[str, Frames], rounds: int) -> dict[str, Cost]:
    servers = Servers(redis.url, list(next(iter(kinds.values()))))
    seen: dict[str, list[Cost]] = {kind: [] for kind in kinds}
    async with servers.line.listening(["from:one"]) as ears:
        for _ in range(rounds):
            for kind, frames in kinds.items():
                seen[kind].append(await _round(redis, servers, ears, frames))
    await servers.line.close()
    return {kind: _least(costs) for kind, costs in seen.items()}


def _least(costs: list[Cost]) -> Cost:
    """Each part as it was in its best round: other programs on the machine only add to it."""
    return Cost(
        min(cost.memory_ms for cost in costs),
        min(cost.telling_ms for cost in costs),
        min(cost.hearing_ms for cost in costs),
        min(cost.redis_ms for cost in costs),
        costs[0].frames_bytes,
        costs[0].packed_bytes,
    )


async def _round(redis: RedisServer, servers: Servers, ears: Ears, frames: Frames) -> Cost:
    memory_ms = _cpu_ms(lambda: servers.take(frames))
    redis_before_ms = _redis_ms(redis)
    began_s = time.process_time()
    packed = await servers.tell(frames)
    telling_ms = (time.process_time() - began_s) * 1e3
    began_s = time.process_time()
    await servers.hear(ears)
    hearing_ms = (time.process_time() - began_s) * 1e3
    size = sum(map(len, frames.values()))
    return Cost(memory_ms, telling_ms, hearing_ms, _redis_ms(redis) - redis_before_ms, size, packed)


def _cpu_ms(work: Callable[[], None]) -> float:
    began_s = time.process_time()
    work()
    return (time.process_time() - began_s) * 1e3


def _redis_ms(redis: RedisServer) -> float:
    """CPU time of redis-server so far, as it counts it."""
    told = redis.command("INFO", "cpu")
    assert isinstance(told, dict)
    return float(told["used_cpu_user"] + told["used_cpu_sys"]) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=PER)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with support.server() as redis:
        found = measure(redis, options.ranks, options.rounds)
    share = PER / options.ranks
    print(f"CPU milliseconds per {PER:,} rank updates ({options.ranks:,} ranks, 8 per node)")
    print(f"{'':14}{'in memory':>12}{'telling':>12}{'hearing':>12}{'redis':>9}{'sent':>18}")
    for kind, cost in found.items():
        sent = f"{cost.packed_bytes * share / 1e6:.1f} of {cost.frames_bytes * share / 1e6:.1f} MB"
        print(
            f"{kind:14}{cost.memory_ms * share:12.0f}{cost.telling_ms * share:12.0f}"
            f"{cost.hearing_ms * share:12.0f}{cost.redis_ms * share:9.0f}{sent:>18}"
        )


if __name__ == "__main__":
    main()
