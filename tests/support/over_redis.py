"""A board and a bus of two servers: said at the one, carried by a real Redis, read at the other.

Each call is carried before it returns, in an event loop of its own beside that of the test.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Coroutine, Iterable, Mapping
from concurrent.futures import Future
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

from hangwatch_agent import wire
from hangwatch_server.board import JobMeta, NodeState, ProcessId, RelayedBoard
from hangwatch_server.bus import RelayedBus, Subscription
from hangwatch_server.ingest.hub import Connection, Hub
from hangwatch_server.model import Link, Snapshot
from hangwatch_server.relay import letters
from hangwatch_server.relay.incoming import Incoming
from hangwatch_server.relay.line import Ears, Line
from hangwatch_server.relay.outbox import Outbox
from hangwatch_server.relay.peers import Peers
from hangwatch_server.relay.service import RedisRelay

T = TypeVar("T")
_numbers = itertools.count(1)


class Aside:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        done: Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return done.result(60)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class SetClock:
    """Shows what the test says that time it is."""

    now_s = 0.0

    def monotonic_s(self) -> float:
        return self.now_s

    def now(self) -> datetime:
        return datetime.now(UTC)


class Carrier:
    """Carries batches of one sender over a Redis, as publisher and listener of a relay do."""

    def __init__(self, aside: Aside, url: str, clock: SetClock) -> None:
        self.outbox = Outbox(clock.monotonic_s)
        self.outbox.open()
        self._aside, self._number = aside, 0
        self._line = Line(url, f"contract-{next(_numbers)}")
        self._listening = self._line.listening(["from:one"])
        self._ears: Ears = aside.run(self._listening.__aenter__())

    def carry(self) -> list[letters.Batch]:
        return self._aside.run(self._carry())

    async def _carry(self) -> list[letters.Batch]:
        carried = []
        while taken := self.outbox.take():
            self._number += 1
            data = letters.encode(letters.Batch("one", self._number, taken))
            await self._line.publish([("from:one", letters.pack(data))])
            carried.append(letters.batch(await self._next()))
        return carried

    async def _next(self) -> bytes:
        while True:
            message = await self._ears.next(30)
            if message is not None:
                return message[1]

    def close(self) -> None:
        self._aside.run(self._close())

    async def _close(self) -> None:
        await self._listening.__aexit__(None, None, None)
        await self._line.close()


class BusOverRedis:
    """Implements bus.Bus: what is published at one server is heard at the other."""

    def __init__(self, aside: Aside, url: str, queue_size: int) -> None:
        self._carrier = Carrier(aside, url, SetClock())
        self._here = RelayedBus(self._tell, queue_size)
        self._there = RelayedBus(lambda topic, data: None, queue_size)

    def _tell(self, topic: str, data: Mapping[str, str]) -> None:
        self._carrier.outbox.put(letters.Changed(topic, dict(data)))

    def publish(self, topic: str, data: Mapping[str, str], *, is_local: bool = False) -> None:
        self._here.publish(topic, data, is_local=is_local)
        for batch in self._carrier.carry():
            for letter in map(letters.letter, batch.letters):
                assert isinstance(letter, letters.Changed)
                self._there.deliver(letter.topic, letter.data)

    def subscribe(self, topics: Iterable[str]) -> Subscription:
        return self._there.subscribe(topics)

    def close(self) -> None:
        self._there.close()

    def end(self) -> None:
        self._carrier.close()


class BoardOverRedis:
    """Implements board.Board: agents speak to one server, and the other one's board is read."""

    def __init__(self, aside: Aside, url: str) -> None:
        self._aside, self._clock = aside, SetClock()
        self._carrier = Carrier(aside, url, self._clock)
        self._here, self._there, self._hub = RelayedBoard(), RelayedBoard(), Hub()
        outbox, nobody = self._carrier.outbox, cast(Any, None)
        self._relay = RedisRelay(
            "one", nobody, outbox, self._here, self._hub, nobody, Peers(5.0), nobody, self._clock
        )
        self._peers = Peers(5.0)
        self._peers.called("one", 0, 0.0)
        bus = RelayedBus(lambda topic, data: None)
        self._incoming = Incoming("two", self._peers, outbox, self._there, bus, Hub(), self._clock)

    def _carry(self, now_s: float) -> None:
        self._clock.now_s = now_s
        peer = self._peers.find("one")
        assert peer is not None
        for batch in self._carrier.carry():
            self._peers.batch("one", batch.number)
            for data in batch.letters:
                assert self._aside.run(self._incoming.take(peer, data)), "something was missed"

    def hello(
        self, node: str, hello: wire.Hello, now_s: float, clock_ahead_s: float | None = None
    ) -> None:
        self._clock.now_s = now_s
        self._leave(node)
        self._hub.join(Connection(node, cast(Any, None), now_s), now_s)
        self._here.hello(node, hello, now_s, clock_ahead_s)
        self._relay.joined(node)
        self._carry(now_s)

    def disconnected(self, node: str, now_s: float) -> None:
        self._leave(node)
        self._here.disconnected(node, now_s)
        self._relay.left(node)
        self._carry(now_s)

    def _leave(self, node: str) -> None:
        connection = self._hub.connection(node)
        if connection is not None:
            self._hub.leave(connection)

    def unknown_groups(self, heartbeat: wire.Heartbeat) -> list[wire.GroupInfo]:
        return self._there.unknown_groups(heartbeat)

    def apply(self, node: str, heartbeat: wire.Heartbeat, now_s: float) -> None:
        self._clock.now_s = now_s
        self._here.apply(node, heartbeat, now_s)
        self._relay.beat(node, wire.encode(heartbeat))
        self._carry(now_s)

    # What each server does by itself.

    def merge_entries(self, part: wire.CapturePart, now_s: float) -> None:
        for board in (self._here, self._there):
            board.merge_entries(part, now_s)

    def set_base(
        self, job: str, attempt: int, processes: Mapping[int, ProcessId], now_s: float
    ) -> None:
        for board in (self._here, self._there):
            board.set_base(job, attempt, processes, now_s)

    def align(
        self, job: str, attempt: int, processes: Mapping[int, ProcessId], now_s: float
    ) -> None:
        for board in (self._here, self._there):
            board.align(job, attempt, processes, now_s)

    def forget(self, silent_s: float, now_s: float) -> tuple[str, ...]:
        self._here.forget(silent_s, now_s)
        return self._there.forget(silent_s, now_s)

    # What is read.

    def jobs(self) -> tuple[str, ...]:
        return self._there.jobs()

    def snapshot(self, job: str, now_s: float) -> Snapshot | None:
        return self._there.snapshot(job, now_s)

    def job_meta(self, job: str, now_s: float) -> JobMeta | None:
        return self._there.job_meta(job, now_s)

    def processes(self, job: str) -> dict[int, ProcessId]:
        return self._there.processes(job)

    def node_of(self, job: str, rank: int) -> str | None:
        return self._there.node_of(job, rank)

    def unheard(self, job: str) -> int:
        return self._there.unheard(job)

    def links(self, now_s: float) -> dict[str, Link]:
        return self._there.links(now_s)

    def nodes(self, now_s: float) -> tuple[NodeState, ...]:
        return self._there.nodes(now_s)

    def end(self) -> None:
        self._carrier.close()
