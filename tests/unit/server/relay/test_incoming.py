"""Of two connections of one node, at two servers that did not hear each other, one stays."""

from __future__ import annotations

from typing import Any, cast

import pytest
from tests.support.over_redis import SetClock
from tests.unit.server.ingest.test_hub import Line

from hangwatch_agent import wire
from hangwatch_server.board import RelayedBoard
from hangwatch_server.bus import RelayedBus
from hangwatch_server.ingest.hub import Connection, Hub
from hangwatch_server.relay import letters
from hangwatch_server.relay.incoming import Incoming
from hangwatch_server.relay.outbox import Outbox
from hangwatch_server.relay.peers import Peers

pytestmark = pytest.mark.anyio
HELLO = wire.Hello(protocol=wire.PROTOCOL, node="node-a", version="")
NOW_S = 100.0


async def stays(here: str, there: str, own_s: float, other_s: float) -> bool:
    """Whether server `here` keeps its connection; both are so many seconds old."""
    clock, hub, line = SetClock(), Hub(), Line()
    clock.now_s = NOW_S
    connection = Connection("node-a", line, NOW_S - own_s)
    hub.join(connection, NOW_S - own_s)
    connection.heard_s = NOW_S
    peers = Peers(5.0)
    peers.called(there, 0, NOW_S)
    bus = RelayedBus(lambda topic, data: None)
    outbox = Outbox(clock.monotonic_s)
    incoming = Incoming(here, peers, outbox, RelayedBoard(), bus, hub, clock)
    peer = peers.find(there)
    assert peer is not None

    letter = letters.Joined("node-a", wire.encode(HELLO), other_s)
    await incoming.take(peer, cast(Any, letters.encode(letter)))

    assert hub.has("node-a") is (line.closed == [])
    return hub.has("node-a")


@pytest.mark.parametrize("names", [("one", "two"), ("two", "one")])
async def test_older_connection_stays_whatever_the_servers_are_called(
    names: tuple[str, str],
) -> None:
    assert await stays(*names, own_s=30.0, other_s=10.0)
    assert not await stays(*names, own_s=10.0, other_s=30.0)


@pytest.mark.parametrize("ahead_s", [-0.5, 0.0, 0.5])
async def test_of_two_that_are_about_as_old_one_stays(ahead_s: float) -> None:
    at_one = await stays("one", "two", own_s=10.0 + ahead_s, other_s=10.0)
    at_two = await stays("two", "one", own_s=10.0, other_s=10.0 + ahead_s)

    assert [at_one, at_two] == [True, False]


class Failing:
    """Captures with a defect."""

    async def arrived(self, node: str, part: wire.CapturePart, now_s: float) -> None:
        raise KeyError(part.rank)

    def sampled(self, node: str, frame: wire.Samples) -> None:
        raise AssertionError("no looks are told here")


async def test_letter_that_fails_counts_as_missed_and_the_next_one_is_taken() -> None:
    clock, hub, peers = SetClock(), Hub(), Peers(5.0)
    peers.called("two", 0, 0.0)
    board, bus = RelayedBoard(), RelayedBus(lambda topic, data: None)
    outbox = Outbox(clock.monotonic_s)
    incoming = Incoming("one", peers, outbox, board, bus, hub, clock)
    incoming.captures = Failing()
    peer = peers.find("two")
    assert peer is not None
    part = wire.CapturePart(capture="c1", launch="run-1", rank=0, pid=7, age_s=0.0)

    taken = [
        await incoming.take(peer, cast(Any, letters.encode(letter)))
        for letter in (
            letters.Part("node-a", wire.encode(part)),
            letters.Joined("node-a", wire.encode(HELLO), 1.0),
        )
    ]

    assert taken == [False, True]
    assert peers.holder("node-a") == "two"
