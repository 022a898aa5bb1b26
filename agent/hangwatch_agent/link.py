"""The connection to the server: hello, heartbeats, commands, captures until they are acknowledged.

Only the newest state is ever sent: a heartbeat that cannot leave in time is counted as dropped, and
the next one is whole. After each reconnect the agent sends full state and every capture in the
spool. The commands that a server may give are the wire's and no others.
"""

from __future__ import annotations

import asyncio
import random
import ssl
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import msgspec
import websockets
from websockets.asyncio.client import ClientConnection, connect

from hangwatch_agent import fitting, logs, ranks, rhythm, wire
from hangwatch_agent.carried import Carried
from hangwatch_agent.errors import AgentError, RefusedError, SettingsError
from hangwatch_agent.spool import Clock, Spool, key_of

STREAM_PATH = "/api/v1/agent/stream"
FIRST_BACKOFF_S, MAX_BACKOFF_S = 0.5, 15.0
PERMANENT_RETRY_S = 60.0
OPEN_TIMEOUT_S = 10.0
WELCOME_TIMEOUT_S = 10.0
SEND_TIMEOUT_S = 30.0
SAY_AGAIN_S = 60.0
MAX_SAMPLES = 64
MIN_INTERVAL_S, MAX_INTERVAL_S = 0.25, 30.0
_SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}


@dataclass(frozen=True)
class State:
    """What the next heartbeat says."""

    launches: tuple[wire.Launch, ...]
    translated: tuple[ranks.Translated, ...]
    ras: tuple[wire.RasReport, ...] = ()


@dataclass(frozen=True)
class Address:
    """Where and how to connect."""

    server: str
    token: Callable[[], Awaitable[str]]  # what to show now
    ca_file: Path | None
    on_refused: Callable[[], Awaitable[None]]  # the token is no longer good


def stream_url(server: str) -> str:
    """The WebSocket address of a server given as http(s):// or ws(s)://; raise SettingsError."""
    parts = urlsplit(server if "://" in server else f"http://{server}")
    if parts.scheme not in _SCHEMES or not parts.hostname:
        raise SettingsError(
            f"server address {server!r} cannot be used: write http://HOST:PORT or https://HOST"
        )
    path = parts.path.rstrip("/")
    path = path if path.endswith(STREAM_PATH) else path + STREAM_PATH
    return urlunsplit((_SCHEMES[parts.scheme], parts.netloc, path, "", ""))


def backoff_s(failures: int, jitter: float) -> float:
    """Wait before attempt `failures` + 1; `jitter` in [0, 1) spreads agents over half the wait."""
    longest: float = min(MAX_BACKOFF_S, FIRST_BACKOFF_S * 2 ** min(failures - 1, 10))
    return longest * (0.5 + 0.5 * jitter)


class Link:
    """One agent's connection. `run` never returns; everything else may be called at any time."""

    def __init__(
        self,
        address: Address,
        hello: wire.Hello,
        spool: Spool,
        *,
        state: Callable[[], State],
        clock: Callable[[], Clock],
        on_capture: Callable[[wire.TakeCapture], None],
        on_ask_ras: Callable[[wire.AskRas], None],
        interval_s: float,
    ) -> None:
        self._url = stream_url(address.server)
        self._address = address
        self._hello = hello
        self._spool = spool
        self._state = state
        self._clock = clock
        self._on_capture = on_capture
        self._on_ask_ras = on_ask_ras
        self._interval_s = interval_s
        self._number = 0
        self._dropped = 0
        self._known_groups: set[str] = set()
        self._told_ras: dict[str, int] = {}  # launch -> number of the newest answer sent
        self._is_full_due = True
        self._beat_due = asyncio.Event()
        self._capture_due = asyncio.Event()
        self._samples: deque[tuple[float, wire.CapturePart]] = deque(maxlen=MAX_SAMPLES)
        self._sample_due = asyncio.Event()
        self._takes_samples = False
        self._keeps_entries = False
        self._carried = Carried()
        self._failures = 0
        self._is_linked = False
        self._said_at_s = float("-inf")

    def beat_now(self) -> None:
        """Send a heartbeat at once instead of at the next interval."""
        self._beat_due.set()

    def send_captures(self) -> None:
        """The spool has something new."""
        self._capture_due.set()

    @property
    def wants_samples(self) -> bool:
        """Whether a server is there that takes looks at ranks."""
        return self._is_linked and self._takes_samples

    def send_sample(self, part: wire.CapturePart) -> None:
        """Send a look at a rank if a server takes it now; one that nobody takes is dropped."""
        if self.wants_samples:
            self._samples.append((time.monotonic(), part))
            self._sample_due.set()

    async def run(self) -> None:
        """Connect, serve, and connect again, for as long as the agent lives."""
        context = self._tls()
        loop = asyncio.get_running_loop()
        while True:
            lost_at_s = loop.time()
            try:
                await self._connected(context)
            except RefusedError as error:
                if error.code == "unauthorised":
                    await self._address.on_refused()
                lost_at_s = loop.time() if self._is_linked else lost_at_s
                wait_s = error.retry_s
                self._note(error, wait_s)
            except (OSError, TimeoutError, AgentError, websockets.WebSocketException) as error:
                lost_at_s = loop.time() if self._is_linked else lost_at_s
                self._failures += 1
                wait_s = backoff_s(self._failures, random.random())
                self._say(_cause(error), wait_s)
            finally:
                self._is_linked = False
            await asyncio.sleep(wait_s)
            self._drop(loop.time() - lost_at_s)

    def _note(self, error: RefusedError, wait_s: float) -> None:
        """A server that stops in order is no failure, and the one that follows it is not late."""
        if error.code == wire.GOING_AWAY:
            logs.info("server_stops", server=self._url, back_in_s=f"{wait_s:.1f}")
            return
        self._failures += 1
        self._say(str(error), wait_s)

    def _drop(self, away_s: float) -> None:
        """Count the heartbeats that nobody received; numbers rise all the same."""
        missed = int(away_s / self._interval_s)
        self._number += missed
        self._dropped += missed

    async def _connected(self, context: ssl.SSLContext | None) -> None:
        token = await self._address.token()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with connect(
            self._url,
            additional_headers=headers,
            max_size=wire.MAX_FRAME_BYTES,
            open_timeout=OPEN_TIMEOUT_S,
            ping_interval=10,
            ping_timeout=20,
            close_timeout=2,
            compression=None,
            ssl=context,
        ) as socket:
            await self._greet(socket)
            await self._serve(socket)

    async def _greet(self, socket: ClientConnection) -> None:
        hello = msgspec.structs.replace(self._hello, wall_s=time.time())
        await self._send(socket, wire.encode(hello))
        async with asyncio.timeout(WELCOME_TIMEOUT_S):
            answer = _decoded(await socket.recv())
        if isinstance(answer, wire.Refused):
            raise _refused(answer)
        if not isinstance(answer, wire.Welcome):
            raise AgentError("the server did not answer with a welcome")
        self._interval_s = _interval(answer.interval_s)
        self._takes_samples = answer.takes_samples
        self._keeps_entries = answer.keeps_entries
        self._samples.clear()
        self._is_full_due = True
        self._is_linked = True
        self._failures = 0
        self._said_at_s = float("-inf")
        logs.info("linked", server=self._url, node=self._hello.node, version=answer.version)

    async def _serve(self, socket: ClientConnection) -> None:
        """Run until the connection ends; its end is raised as one plain error."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._receive(socket))
                group.create_task(self._beat(socket))
                group.create_task(self._deliver(socket))
                group.create_task(self._tell_samples(socket))
        except ExceptionGroup as problems:
            refused, others = problems.split(RefusedError)
            raise (refused or others or problems).exceptions[0] from None

    async def _receive(self, socket: ClientConnection) -> None:
        async for data in socket:
            self._obey(_decoded(data))
        raise ConnectionError("the server closed the connection")

    def _obey(self, frame: wire.ServerFrame | None) -> None:
        match frame:
            case wire.Stored():
                self._spool.remove(key_of(frame.capture, frame.launch, frame.rank))
            case wire.TakeCapture():
                self._on_capture(frame)
            case wire.SetInterval():
                self._interval_s = _interval(frame.interval_s)
            case wire.AskRas():
                self._on_ask_ras(frame)
            case wire.Refused():
                raise _refused(frame)
            case wire.Welcome() | None:
                logs.warning("server_frame_ignored", frame=type(frame).__name__)

    async def _beat(self, socket: ClientConnection) -> None:
        loop = asyncio.get_running_loop()
        while True:
            started_s = loop.time()
            self._beat_due.clear()
            await self._send(socket, self._heartbeat())
            self._drop(loop.time() - started_s)
            try:
                async with asyncio.timeout(rhythm.wait_s(self._interval_s, loop.time())):
                    await self._beat_due.wait()
            except TimeoutError:
                continue

    def _heartbeat(self) -> bytes:
        state = self._state()
        if self._is_full_due:
            self._known_groups.clear()
            self._told_ras.clear()
            self._carried.clear()
        beats = tuple(item.beat for item in state.translated)
        groups = {
            info.gid: info
            for item in state.translated
            for info in item.groups
            if info.gid not in self._known_groups
        }
        current = {info.gid for item in state.translated for info in item.groups}
        self._number += 1
        heartbeat, data = fitting.heartbeat(
            wire.Heartbeat(
                number=self._number,
                launches=state.launches,
                ranks=self._carried.less(beats) if self._keeps_entries else beats,
                groups=tuple(groups.values()),
                is_full=self._is_full_due,
                dropped=self._dropped,
                ras=self._new_ras(state),
            )
        )
        self._known_groups.update(info.gid for info in heartbeat.groups)
        self._known_groups &= current
        self._carried.note(heartbeat.ranks)
        self._is_full_due = False
        return data

    def _new_ras(self, state: State) -> tuple[wire.RasReport, ...]:
        """Answers of NCCL RAS that this connection has not carried yet."""
        new = tuple(
            report for report in state.ras if self._told_ras.get(report.launch) != report.number
        )
        self._told_ras = {report.launch: report.number for report in state.ras}
        return new

    async def _deliver(self, socket: ClientConnection) -> None:
        """Send each spooled part once per connection; the server's ack removes it."""
        sent: set[str] = set()
        while True:
            self._capture_due.clear()
            for key in await asyncio.to_thread(self._spool.keys):
                part = await asyncio.to_thread(self._spool.get, key, self._clock())
                if part is None or (key in sent):
                    continue
                sent.add(key)
                await self._send(socket, fitting.part(part))
            await self._capture_due.wait()

    async def _tell_samples(self, socket: ClientConnection) -> None:
        while True:
            await self._sample_due.wait()
            self._sample_due.clear()
            while self._samples:
                at_s, part = self._samples.popleft()
                age_s = part.age_s + time.monotonic() - at_s
                await self._send(socket, fitting.sample(msgspec.structs.replace(part, age_s=age_s)))

    async def _send(self, socket: ClientConnection, data: bytes) -> None:
        async with asyncio.timeout(SEND_TIMEOUT_S):
            await socket.send(data)

    def _say(self, text: str, wait_s: float) -> None:
        """Say why there is no connection: at once, then every minute."""
        now_s = asyncio.get_running_loop().time()
        if now_s - self._said_at_s >= SAY_AGAIN_S:
            self._said_at_s = now_s
            logs.warning(
                "not_linked",
                server=self._url,
                why=text,
                retry_s=f"{wait_s:.1f}",
                dropped=self._dropped,
            )

    def _tls(self) -> ssl.SSLContext | None:
        if not self._url.startswith("wss:"):
            return None
        try:
            return ssl.create_default_context(cafile=self._address.ca_file)
        except OSError as error:
            raise SettingsError(
                f"CA file {self._address.ca_file} cannot be used: {error}; check --ca-file"
            ) from error


def _decoded(data: str | bytes) -> wire.ServerFrame | None:
    """The server's frame; None for one that this version does not know."""
    if isinstance(data, str):
        return None
    try:
        return wire.decode_from_server(data)
    except wire.WireError as error:
        logs.warning("server_frame_unknown", why=error)
        return None


def _refused(frame: wire.Refused) -> RefusedError:
    """The server's reason, which says what to do, and when asking again makes sense."""
    retry_s = PERMANENT_RETRY_S if frame.retry_after_s is None else frame.retry_after_s
    return RefusedError(
        f"the server refused this agent ({frame.code}): {frame.reason}",
        max(FIRST_BACKOFF_S, min(retry_s, 600.0)),
        frame.code,
    )


def _cause(error: Exception) -> str:
    match error:
        case websockets.InvalidStatus():
            return _http_cause(error.response.status_code)
        case websockets.ConnectionClosed():
            reason = error.rcvd.reason if error.rcvd else ""
            return f"the connection ended: {reason or 'no reason given'}"
        case TimeoutError():
            return "the server did not answer in time"
        case ssl.SSLCertVerificationError():
            return f"its certificate is not trusted: {error.verify_message}; give --ca-file"
        case OSError():
            return (
                f"cannot be reached: {error.strerror or error}; is `hangwatch serve` running there?"
            )
        case _:
            return str(error)


def _http_cause(status: int) -> str:
    if status in (401, 403):
        return (
            f"the token was refused (HTTP {status}); give a token with scope agent: "
            "HANGWATCH_TOKEN or --token (`hangwatch token create` on the server)"
        )
    if status == 404:
        return "there is no Hangwatch server at this address (HTTP 404); check --server"
    return f"the server answered HTTP {status}"


def _interval(seconds: float) -> float:
    return min(max(seconds, MIN_INTERVAL_S), MAX_INTERVAL_S)
