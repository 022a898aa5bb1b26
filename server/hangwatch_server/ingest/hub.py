"""The live connections of agents, one per node, and sending to them. It reads nothing from them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from typing import Protocol

from starlette.websockets import WebSocketDisconnect

from hangwatch_agent import wire
from hangwatch_server import logs, metrics
from hangwatch_server.errors import HangwatchError
from hangwatch_server.ingest.turns import Turns

SEND_TIMEOUT_S = 5.0
# A connection that was silent for longer may be replaced: the agent's machine may have lost its
# address or its power without a closing packet, and must not lock itself out.
HALF_DEAD_S = 5.0
POLICY_VIOLATION = 1008
GOING_AWAY = 1001
# What sending over a line raises that is closed, or breaks meanwhile: uvicorn's own error comes as
# Starlette's WebSocketDisconnect, which is neither of the other two. A timeout is an OSError.
BROKEN = (OSError, RuntimeError, WebSocketDisconnect)

_log = logs.get()


class Line(Protocol):
    """What the hub needs of a connection."""

    async def send_bytes(self, data: bytes) -> None: ...

    async def close(self, code: int, reason: str) -> None: ...


class DuplicateNodeError(HangwatchError):
    """Another live connection speaks for this node."""


class Connection:
    """One accepted agent."""

    def __init__(
        self, node: str, line: Line, now_s: float, token: str = "", jobs: str = ""
    ) -> None:
        self.node = node
        self.since_s = self.heard_s = now_s
        self.token = token  # id of the one it was let in with
        self.lacks_since_s: float | None = None  # a capture came that could not be stored
        self.is_leaving = False  # it was asked to come back elsewhere: what it says is dropped
        self.jobs = jobs  # pattern of those that it may speak of, "" for all
        self.left_out: set[str] = set()  # names of others, which it was told of once
        self.is_expelled = False  # that token is no longer good: its next frame is refused
        self._line = line
        self._lock = asyncio.Lock()

    async def send(self, frame: wire.ServerFrame) -> bool:
        """Return False when the agent could not be reached in time, or may no longer be."""
        if self.is_expelled:
            return False
        try:
            async with asyncio.timeout(SEND_TIMEOUT_S), self._lock:
                await self._line.send_bytes(wire.encode(frame))
        except BROKEN as error:
            _log.info("agent_unreachable", node=self.node, error=repr(error))
            return False
        return True

    async def refuse(self, frame: wire.Refused) -> None:
        """Say why, and close."""
        await self.send(frame)
        await self.close(POLICY_VIOLATION, frame.reason)

    async def close(self, code: int, reason: str) -> None:
        """Never raises: one that is broken already is closed."""
        try:
            async with asyncio.timeout(SEND_TIMEOUT_S):
                await self._line.close(code, reason[:100])
        except BROKEN:
            _log.debug("connection_closed_already", node=self.node)


def duplicate(node: str) -> wire.Refused:
    """What the second of two live connections of a node is told."""
    return wire.Refused(
        code="duplicate_node",
        reason=f"an agent for node '{node}' is connected already: stop one of the two, "
        "or give this one another name with --node",
        retry_after_s=HALF_DEAD_S,
    )


def going_away(back_after_s: float) -> wire.Refused:
    """What the agents of a server that stops are told."""
    return wire.Refused(
        code=wire.GOING_AWAY,
        reason="this server stops: come back, to another one if there is one",
        retry_after_s=round(back_after_s, 3),
    )


class Hub:
    """Knows the connection of each node."""

    def __init__(self, interval_s: float = 1.0) -> None:
        self.interval_s = interval_s  # of the heartbeats of all agents, now
        self._connections: dict[str, Connection] = {}
        self.turns = Turns(time.monotonic)

    def join(self, connection: Connection, now_s: float) -> Connection | None:
        """Make this the node's connection; return a half-dead one that it replaces.

        Raises DuplicateNodeError while another connection of the node is alive.
        """
        old = self._connections.get(connection.node)
        if old is not None and now_s - old.heard_s <= HALF_DEAD_S:
            raise DuplicateNodeError(duplicate(connection.node).reason)
        self._connections[connection.node] = connection
        metrics.agents_connected.set(len(self._connections))
        return old

    def leave(self, connection: Connection) -> bool:
        """Return whether this was still the node's connection."""
        if self._connections.get(connection.node) is not connection:
            return False
        del self._connections[connection.node]
        metrics.agents_connected.set(len(self._connections))
        return True

    def has(self, node: str) -> bool:
        return node in self._connections

    def connection(self, node: str) -> Connection | None:
        return self._connections.get(node)

    def nodes(self) -> tuple[str, ...]:
        """The nodes that are connected here."""
        return tuple(self._connections)

    def tokens(self) -> frozenset[str]:
        """Ids of the tokens that the agents here were let in with."""
        return frozenset(connection.token for connection in self._connections.values())

    def expel(self, tokens: Collection[str]) -> None:
        """Refuse whatever still comes from agents that were let in with these."""
        for connection in self._connections.values():
            if connection.token in tokens and not connection.is_expelled:
                connection.is_expelled = True
                _log.warning("agent_expelled", node=connection.node, token=connection.token)

    async def send(self, node: str, frame: wire.ServerFrame) -> bool:
        """Return False when the node is not connected or could not be reached in time."""
        connection = self._connections.get(node)
        return connection is not None and await connection.send(frame)

    async def send_all(self, frame: wire.ServerFrame) -> None:
        """Send to every connected agent."""
        async with asyncio.TaskGroup() as group:
            for connection in list(self._connections.values()):
                group.create_task(connection.send(frame))

    async def close_all(self, reason: str) -> None:
        """Say goodbye to every agent: the server stops."""
        async with asyncio.TaskGroup() as group:
            for connection in list(self._connections.values()):
                group.create_task(connection.close(GOING_AWAY, reason))
