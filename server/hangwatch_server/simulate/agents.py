"""The agents of a play: one connection per node, which beats, answers captures and comes back.

They speak as `hangwatch agent` does, except that nothing is spooled: a capture that cannot be sent
is lost, as the rank that it would be of does not exist.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import msgspec
import websockets
from websockets.asyncio.client import ClientConnection, connect

import hangwatch_server
from hangwatch_agent import wire
from hangwatch_server.errors import HangwatchError
from hangwatch_server.simulate.play import Play

CONNECTING = 32  # at the same time
AGAIN_S = 2.0
PY_SPY_S = 0.4  # what reading a process takes about
OPEN_TIMEOUT_S = 60.0
PERMANENT = frozenset({"unauthorised", "wrong_node", "protocol"})


class RefusedError(HangwatchError):
    """The server takes no agents with this token."""


class MovedError(HangwatchError):
    """The server stops, and says when to come back."""

    def __init__(self, text: str, after_s: float) -> None:
        super().__init__(text)
        self.after_s = after_s


async def run(
    play: Play, url: str, token: str, *, clock_s: Callable[[], float] = time.monotonic
) -> None:
    """Beat for all nodes until cancelled; raise RefusedError where asking again is of no use."""
    mesh = play.scene.mesh
    number = mesh.node_of(mesh.size - 1) + 1
    gate = asyncio.Semaphore(CONNECTING)
    async with asyncio.TaskGroup() as group:
        for node in range(number):
            agent = Agent(play, node, node / number, gate, clock_s)
            group.create_task(agent.live(stream_url(url), token))


def stream_url(server: str) -> str:
    """The WebSocket address of a server given as http(s)://."""
    return server.rstrip("/").replace("http", "ws", 1) + "/api/v1/agent/stream"


class Agent:
    """One node's. `offset` in [0, 1) spreads the beats of all nodes over the interval."""

    def __init__(
        self,
        play: Play,
        node: int,
        offset: float,
        gate: asyncio.Semaphore,
        clock_s: Callable[[], float],
    ) -> None:
        self.name = f"node-{node:04d}"
        self._play, self._node, self._offset = play, node, offset
        self._gate, self._clock_s = gate, clock_s
        self._ranks = play.scene.mesh.on_node(node)
        self._number = 0
        self._interval_s = 1.0
        self._keeps_entries = False
        self._carried: dict[tuple[int, str], tuple[wire.Entry, ...]] = {}  # by the newest beat

    async def live(self, url: str, token: str) -> None:
        """Until the play says that the machine is gone."""
        while not self._is_gone():
            try:
                await self._connected(url, token)
            except MovedError as moved:
                await asyncio.sleep(moved.after_s)
            except (OSError, TimeoutError, websockets.WebSocketException):
                await asyncio.sleep(AGAIN_S * (1 + self._offset))

    def _is_gone(self) -> bool:
        return self._play.is_gone(self._node, self._clock_s())

    async def _connected(self, url: str, token: str) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with self._gate:
            line = await connect(
                url,
                additional_headers=headers,
                max_size=wire.MAX_FRAME_BYTES,
                open_timeout=OPEN_TIMEOUT_S,
                ping_interval=None,  # heartbeats keep the line
                compression=None,
            )
            hello = wire.Hello(
                protocol=wire.PROTOCOL,
                node=self.name,
                version=hangwatch_server.__version__,
                cpu_count=128,
            )
            await line.send(wire.encode(hello))
            welcome = _welcome(await line.recv())
            self._keeps_entries = welcome.keeps_entries
        self._interval_s = welcome.interval_s
        beats = asyncio.create_task(self._beat(line))
        try:
            async for data in line:
                await self._obey(line, wire.decode_from_server(_bytes(data)))
            raise ConnectionError("the server closed the connection")
        finally:
            beats.cancel()
            await asyncio.gather(beats, return_exceptions=True)
            await line.close()

    async def _beat(self, line: ClientConnection) -> None:
        """One heartbeat per interval, each at the same part of it; the line is cut at the end."""
        is_full = True
        while not self._is_gone():
            await line.send(wire.encode(self._heartbeat(is_full=is_full)))
            is_full = False
            now_s, interval_s = asyncio.get_running_loop().time(), self._interval_s
            await asyncio.sleep(interval_s - (now_s - self._offset * interval_s) % interval_s)
        line.transport.abort()

    def _heartbeat(self, *, is_full: bool) -> wire.Heartbeat:
        self._number += 1
        now_s = self._clock_s()
        if is_full:
            self._carried.clear()
        return wire.Heartbeat(
            number=self._number,
            launches=(self._play.launch,),
            ranks=tuple(self._less(self._play.beat(rank, now_s)) for rank in self._ranks),
            groups=self._play.groups(self._ranks) if is_full else (),
            is_full=is_full,
        )

    def _less(self, beat: wire.RankBeat) -> wire.RankBeat:
        """Without entries that this connection has carried, as hangwatch_agent.carried does it.

        A play's entries never change again once a rank stands.
        """
        if not self._keeps_entries:
            return beat
        groups = tuple(self._of_group(beat.rank, group) for group in beat.groups)
        return msgspec.structs.replace(beat, groups=groups)

    def _of_group(self, rank: int, group: wire.GroupBeat) -> wire.GroupBeat:
        before = self._carried.get((rank, group.gid))
        if not group.entries or before is not group.entries:
            self._carried[rank, group.gid] = group.entries
            return group
        return msgspec.structs.replace(group, entries=(), are_entries_kept=True)

    async def _obey(self, line: ClientConnection, frame: wire.ServerFrame) -> None:
        if isinstance(frame, wire.Refused):
            raise _refusal(frame)
        if isinstance(frame, wire.SetInterval):
            self._interval_s = frame.interval_s
        if not isinstance(frame, wire.TakeCapture):
            return
        await asyncio.sleep(PY_SPY_S)
        for target in frame.targets:
            if target.launch == self._play.launch.key and target.rank in self._ranks:
                now_s = self._clock_s()
                part = self._play.part(frame.capture, target.rank, frame.kinds, now_s)
                await line.send(wire.encode(part))


def _welcome(data: str | bytes) -> wire.Welcome:
    frame = wire.decode_from_server(_bytes(data))
    if isinstance(frame, wire.Refused):
        raise _refusal(frame)
    if not isinstance(frame, wire.Welcome):
        raise RefusedError("the server did not answer with a welcome: is it a Hangwatch server?")
    return frame


def _refusal(frame: wire.Refused) -> Exception:
    if frame.code in PERMANENT:
        return RefusedError(f"the server refused the agents ({frame.code}): {frame.reason}")
    if frame.code == wire.GOING_AWAY:
        return MovedError(frame.reason, frame.retry_after_s or AGAIN_S)
    return ConnectionError(frame.reason)


def _bytes(data: str | bytes) -> bytes:
    return data.encode() if isinstance(data, str) else data
