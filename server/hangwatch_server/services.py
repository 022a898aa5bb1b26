"""The parts of a running server, handed to the doors as one object. Built by `lifespan`."""

from __future__ import annotations

from dataclasses import dataclass

from hangwatch_server.alerts.outgoing import Outgoing
from hangwatch_server.alerts.senders import Senders
from hangwatch_server.alerts.service import Alerts
from hangwatch_server.background import Background
from hangwatch_server.board import Board
from hangwatch_server.bus import Bus
from hangwatch_server.captures.service import Captures
from hangwatch_server.clock import Clock
from hangwatch_server.db.engine import Database
from hangwatch_server.ingest.goodbye import Leaving
from hangwatch_server.ingest.hub import Hub
from hangwatch_server.quotas import Quotas
from hangwatch_server.relay import Relay
from hangwatch_server.relay.presence import Presence
from hangwatch_server.security import Authenticator, Guard
from hangwatch_server.settings import ServerSettings
from hangwatch_server.watch.view import Watch


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What handlers need; everything else is reached through these."""

    settings: ServerSettings
    clock: Clock
    db: Database
    board: Board
    bus: Bus
    hub: Hub
    relay: Relay
    presence: Presence
    leaving: Leaving
    captures: Captures
    watch: Watch
    tokens: Authenticator
    guard: Guard
    background: Background
    outgoing: Outgoing
    senders: Senders
    alerts: Alerts
    quotas: Quotas

    def missing(self) -> str:
        """What this server lacks now, in words for people; "" while nothing."""
        return " ".join(filter(None, (self.presence.missing(), self.relay.missing())))
