"""What makes a server the only one or one of several: its board, bus and relay."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass

from hangwatch_server.board import Board, MemoryBoard, RelayedBoard
from hangwatch_server.bus import Bus, MemoryBus, RelayedBus
from hangwatch_server.clock import Clock
from hangwatch_server.db.engine import Database
from hangwatch_server.ingest.hub import Hub
from hangwatch_server.relay import Alone, Relay
from hangwatch_server.relay.incoming import Incoming, PartTaker
from hangwatch_server.relay.letters import Changed
from hangwatch_server.relay.line import Line
from hangwatch_server.relay.outbox import Outbox
from hangwatch_server.relay.peers import Peers
from hangwatch_server.relay.presence import Presence
from hangwatch_server.relay.service import RedisRelay
from hangwatch_server.settings import ServerSettings

LEAST_SILENT_S = 2.0  # four calls that did not come


@dataclass(frozen=True, slots=True)
class Replica:
    """One run of one server process."""

    name: str
    board: Board
    bus: Bus
    hub: Hub
    relay: Relay
    presence: Presence
    service: RedisRelay | None = None  # of one of several: what runs and stops with the server
    incoming: Incoming | None = None

    def deliver_parts_to(self, captures: PartTaker) -> None:
        """Captures ask through the relay, and get through it what came in elsewhere."""
        if self.incoming is not None:
            self.incoming.captures = captures


def of(settings: ServerSettings, clock: Clock, db: Database) -> Replica:
    """Raises RelayError for an address of Redis that cannot be read."""
    hub = Hub(settings.interval_s)
    if settings.redis_url:
        return _of_several(settings, clock, db, hub)
    board = MemoryBoard(late_s=settings.agent_late_s, lost_s=settings.agent_lost_s)
    name = _name()
    return Replica(name, board, MemoryBus(), hub, Alone(), Presence(db, name, settings.lease_ttl_s))


def _of_several(settings: ServerSettings, clock: Clock, db: Database, hub: Hub) -> Replica:
    name, peers, outbox = _name(), Peers(_silent_s(settings)), Outbox(clock.monotonic_s)
    presence = Presence(db, name, settings.lease_ttl_s)
    board = RelayedBoard(late_s=settings.agent_late_s, lost_s=settings.agent_lost_s)

    def tell(topic: str, data: Mapping[str, str]) -> None:
        outbox.put(Changed(topic, dict(data)))

    bus = RelayedBus(tell)
    incoming = Incoming(name, peers, outbox, board, bus, hub, clock)
    service = RedisRelay(
        name,
        Line(settings.redis_url, settings.redis_prefix),
        outbox,
        board,
        hub,
        incoming,
        peers,
        presence,
        clock,
    )
    return Replica(name, board, bus, hub, service, presence, service, incoming)


def _silent_s(settings: ServerSettings) -> float:
    """Without a word for so long a server is not heard: as long as an agent is given."""
    return max(settings.agent_late_s, LEAST_SILENT_S)


def _name() -> str:
    """Unique to this run of this process."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
