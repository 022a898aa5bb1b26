"""The WebSocket of an agent: authorise, greet, read frames until it ends, refuse with a reason.

Whatever one connection sends, only that connection suffers. What frames mean is decided by the
board and the captures service.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeVar

from fastapi import APIRouter, WebSocket, WebSocketDisconnect

import hangwatch_server
from hangwatch_agent import wire
from hangwatch_server import logs, metrics, security
from hangwatch_server.board import Board
from hangwatch_server.board.base import job_id
from hangwatch_server.bus import Bus
from hangwatch_server.captures.service import Captures
from hangwatch_server.clock import Clock
from hangwatch_server.db.tokens import Token
from hangwatch_server.errors import DatabaseError, TooManyError
from hangwatch_server.ingest import bounds, hub, spoken
from hangwatch_server.ingest.goodbye import Leaving
from hangwatch_server.ingest.hub import Connection, Hub
from hangwatch_server.relay import Relay
from hangwatch_server.settings import ServerSettings

HELLO_TIMEOUT_S = 10.0
IDLE_TIMEOUT_S = 60.0
MAX_LEFT_OUT = 50  # jobs that a connection may not speak of and that are named in the log
TOO_BIG = 1009

router = APIRouter()
_log = logs.get()

T = TypeVar("T")


class Presence(Protocol):
    """Whether the database takes writes."""

    def missing(self) -> str: ...


class House(Protocol):
    """The services that a connection needs; the application's state holds them."""

    @property
    def settings(self) -> ServerSettings: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def board(self) -> Board: ...
    @property
    def bus(self) -> Bus: ...
    @property
    def hub(self) -> Hub: ...
    @property
    def captures(self) -> Captures: ...
    @property
    def relay(self) -> Relay: ...
    @property
    def leaving(self) -> Leaving: ...
    @property
    def presence(self) -> Presence: ...
    @property
    def tokens(self) -> security.Authenticator: ...
    @property
    def guard(self) -> security.Guard: ...


class RefusalError(Exception):
    """Ends a connection with a wire.Refused."""

    def __init__(self, code: str, reason: str, retry_after_s: float | None = None) -> None:
        super().__init__(reason)
        self.frame = wire.Refused(code=code, reason=reason, retry_after_s=retry_after_s)

    @classmethod
    def of(cls, frame: wire.Refused) -> RefusalError:
        return cls(frame.code, frame.reason, frame.retry_after_s)


@router.websocket("/api/v1/agent/stream")
async def stream(websocket: WebSocket) -> None:
    """One agent, from its hello to its end."""
    services: House = websocket.app.state.services
    await websocket.accept()
    try:
        await _serve(websocket, services)
    except RefusalError as refusal:
        await _refuse(websocket, refusal.frame)
    except (WebSocketDisconnect, ConnectionError):
        pass
    except Exception:
        # The boundary of a connection: a defect here must not reach the others.
        _log.exception("connection_failed")
        await _refuse(
            websocket,
            wire.Refused(
                code="internal", reason="the server failed on this: read its log", retry_after_s=5.0
            ),
        )


async def _serve(websocket: WebSocket, services: House) -> None:
    token = await _authorise(websocket, services)
    hello = await _hello(websocket, token)
    connection = Connection(
        hello.node, websocket, services.clock.monotonic_s(), token.id, token.jobs
    )
    old = await _join(services, connection)
    try:
        if old is not None:
            await old.close(hub.POLICY_VIOLATION, "replaced by a newer connection of the node")
        now_s = services.clock.monotonic_s()
        services.board.hello(hello.node, hello, now_s, _clock_ahead_s(hello, services))
        _log.info("agent_connected", node=hello.node, version=hello.version)
        services.relay.joined(hello.node)
        services.bus.publish("nodes", {"node": hello.node}, is_local=True)
        await connection.send(
            wire.Welcome(
                protocol=wire.PROTOCOL,
                version=hangwatch_server.__version__,
                interval_s=services.hub.interval_s,
                takes_samples=True,
                keeps_entries=True,
            )
        )
        while True:
            data = await _receive(websocket, IDLE_TIMEOUT_S)
            if connection.is_expelled:
                raise _unauthorised()
            if connection.is_leaving:
                continue  # it is told already, and says all of it again where it comes to
            _send_again(services, connection)
            read = partial(_read, services, connection, data)
            await _take(services, connection, await services.hub.turns.take(read))
    finally:
        if services.hub.leave(connection):
            services.board.disconnected(hello.node, services.clock.monotonic_s())
            services.relay.left(hello.node)
            services.bus.publish("nodes", {"node": hello.node}, is_local=True)
            _log.info("agent_disconnected", node=hello.node)


async def _authorise(websocket: WebSocket, services: House) -> Token:
    scheme, _, text = websocket.headers.get("authorization", "").partition(" ")
    try:
        token = await services.tokens.check(text.strip()) if scheme.lower() == "bearer" else None
    except DatabaseError as error:
        raise RefusalError("unavailable", str(error), retry_after_s=5.0) from error
    if token is None:
        raise _refused_token(websocket, services)
    if security.Scope.AGENT not in security.granted(token.scopes):
        raise RefusalError(
            "unauthorised", f"token '{token.name}' has no scope agent: use an agent's token"
        )
    return token


def _refused_token(websocket: WebSocket, services: House) -> RefusalError:
    """Why an unknown token is refused; slower to ask again for an address that shows many."""
    try:
        services.guard.failed(websocket.client.host if websocket.client else "")
    except TooManyError as error:
        return RefusalError("too_many", str(error), retry_after_s=error.retry_after_s)
    return _unauthorised()


def _unauthorised() -> RefusalError:
    return RefusalError(
        "unauthorised",
        "the token is missing, unknown, revoked or expired: make one with "
        "`hangwatch token create --scope agent --node NODE` and start the agent with --token",
    )


def _clock_ahead_s(hello: wire.Hello, services: House) -> float | None:
    """How far the node's clock is ahead of ours, less the hello's way here, for people to see."""
    return None if hello.wall_s is None else hello.wall_s - services.clock.now().timestamp()


async def _hello(websocket: WebSocket, token: Token) -> wire.Hello:
    frame = _decoded(await _receive(websocket, HELLO_TIMEOUT_S))
    if not isinstance(frame, wire.Hello):
        raise RefusalError(
            "protocol",
            "the first frame must be a hello: install the same version of hangwatch on both",
        )
    if frame.protocol != wire.PROTOCOL:
        raise RefusalError(
            "protocol",
            f"agent {frame.version[:40]} speaks protocol {frame.protocol}, this server "
            f"{wire.PROTOCOL}: install the same version of hangwatch on both",
        )
    _checked(bounds.check_hello, frame)
    if token.node is not None and token.node != frame.node:
        raise RefusalError(
            "wrong_node",
            f"token '{token.name}' is bound to node '{token.node}' and cannot speak for "
            f"'{frame.node}': make a token for that node, or start the agent with --node",
        )
    return frame


async def _join(services: House, connection: Connection) -> Connection | None:
    """Returns a half-dead connection of the node, which is to be closed."""
    if not services.leaving.takes_agents:
        raise RefusalError.of(services.leaving.refusal())
    if await services.relay.holder(connection.node):
        raise RefusalError.of(hub.duplicate(connection.node))
    try:
        old = services.hub.join(connection, services.clock.monotonic_s())
    except hub.DuplicateNodeError as error:
        raise RefusalError.of(hub.duplicate(connection.node)) from error
    if old is not None:
        _log.warning("agent_replaced", node=connection.node)
    return old


def _read(services: House, connection: Connection, data: bytes) -> wire.AgentFrame:
    """Decode one frame, and take it in if it is a heartbeat."""
    connection.heard_s = services.clock.monotonic_s()
    frame = _decoded(data)
    if isinstance(frame, wire.Heartbeat):
        _checked(bounds.check_heartbeat, frame)
        own = _own(services, connection, frame)
        _checked(bounds.check_ranges, services.board.unknown_groups(own))
        services.board.apply(connection.node, own, connection.heard_s)
        services.relay.beat(connection.node, data if own is frame else wire.encode(own))
        metrics.frames_received.labels("heartbeat").inc()
    return frame


def _own(services: House, connection: Connection, frame: wire.Heartbeat) -> wire.Heartbeat:
    """Without the jobs that the agent's token is not for; each is logged once per connection."""
    if not connection.jobs:
        return frame

    def name_of(launch: str) -> str | None:
        known = services.board.job_meta(job_id(launch), connection.heard_s)
        return None if known is None else known.name

    found, others = spoken.own(frame, connection.jobs, name_of)
    room = MAX_LEFT_OUT - len(connection.left_out)
    for name in sorted(others - connection.left_out)[:room]:
        connection.left_out.add(name)
        metrics.frames_refused.labels("other_job").inc()
        _log.warning("job_left_out", node=connection.node, job=name[:80], allowed=connection.jobs)
    return frame if _lengths(found) == _lengths(frame) else found


def _lengths(frame: wire.Heartbeat) -> tuple[int, ...]:
    """Of all that may have been left out."""
    return len(frame.launches), len(frame.ranks), len(frame.groups), len(frame.ras)


async def _take(services: House, connection: Connection, frame: wire.AgentFrame) -> None:
    """Hand one frame that is no heartbeat to whom it concerns."""
    if isinstance(frame, wire.Heartbeat):
        return
    if isinstance(frame, wire.CapturePart):
        _checked(bounds.check_part, frame)
        await _deliver(services, connection, frame)
        metrics.frames_received.labels("capture_part").inc()
    elif isinstance(frame, wire.Samples):
        _checked(bounds.check_samples, frame)
        services.captures.sampled(connection.node, frame)
        services.relay.looks(connection.node, frame)
        metrics.frames_received.labels("samples").inc()
    else:
        code = "protocol" if frame.node == connection.node else "wrong_node"
        raise RefusalError(
            code, f"this connection speaks for node '{connection.node}', which said hello already"
        )


async def _deliver(services: House, connection: Connection, part: wire.CapturePart) -> None:
    try:
        is_accepted = await services.captures.deliver(connection.node, part)
    except DatabaseError as error:
        # Not acknowledged, so the agent keeps it. Its heartbeats are still of use.
        connection.lacks_since_s = connection.heard_s
        _log.warning("part_not_stored", node=connection.node, error=str(error))
        return
    if not is_accepted:
        raise RefusalError(
            "wrong_node",
            f"rank {part.rank} of this capture is not a rank of node '{connection.node}'",
        )
    await connection.send(wire.Stored(capture=part.capture, launch=part.launch, rank=part.rank))


def _send_again(services: House, connection: Connection) -> None:
    """An agent sends each capture once per connection: it reconnects when that can be stored."""
    lacks_since_s, now_s = connection.lacks_since_s, services.clock.monotonic_s()
    if lacks_since_s is None or now_s - lacks_since_s < hub.HALF_DEAD_S:
        return
    if services.presence.missing():
        connection.lacks_since_s = now_s
        return
    reason = "captures can be stored again: send those that were not acknowledged"
    raise RefusalError("unavailable", reason, retry_after_s=0.5)


async def _receive(websocket: WebSocket, timeout_s: float) -> bytes:
    try:
        async with asyncio.timeout(timeout_s):
            message = await websocket.receive()
    except TimeoutError as error:
        raise RefusalError(
            "protocol", f"no frame for {timeout_s:.0f} s", retry_after_s=1.0
        ) from error
    if message["type"] == "websocket.disconnect":
        if message.get("code") == TOO_BIG:
            # uvicorn has closed it already, before the frame was read to its end.
            metrics.frames_refused.labels("too_large").inc()
        raise WebSocketDisconnect(message.get("code", 1005))
    data = message.get("bytes")
    if data is None:
        raise RefusalError("malformed", "frames are binary msgpack, this one was text")
    if len(data) > wire.MAX_FRAME_BYTES:
        raise RefusalError(
            "too_large",
            f"a frame of {len(data)} bytes is over the limit of {wire.MAX_FRAME_BYTES}",
        )
    return bytes(data)


def _decoded(data: bytes) -> wire.AgentFrame:
    try:
        return wire.decode_from_agent(data)
    except wire.WireError as error:
        raise RefusalError("malformed", str(error)) from error


def _checked(check: Callable[[T], None], subject: T) -> None:
    try:
        check(subject)
    except wire.WireError as error:
        raise RefusalError("malformed", str(error)) from error


async def _refuse(websocket: WebSocket, frame: wire.Refused) -> None:
    metrics.frames_refused.labels(frame.code).inc()
    client = websocket.client.host if websocket.client else ""
    _log.warning("agent_refused", code=frame.code, client=client, reason=frame.reason)
    with contextlib.suppress(*hub.BROKEN):
        async with asyncio.timeout(hub.SEND_TIMEOUT_S):
            await websocket.send_bytes(wire.encode(frame))
            await websocket.close(hub.POLICY_VIOLATION, frame.reason[:100])
