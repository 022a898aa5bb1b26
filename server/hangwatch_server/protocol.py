"""HTTP as uvicorn speaks it, with the bounds that it lacks: on the head of a request, in bytes and
in seconds, on the time that a whole request takes to arrive, on that in which its answer must be
read, and on the connections that one address may have.

Without them a peer that sends half a head and then nothing holds its connection for ever, one that
never ends its head fills the memory, and one that reads no more of its answer keeps the place of
whoever could be served instead. The limits are far beyond what any browser or client of
ours needs; a proxy in front has its own, and usually closer ones.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections import Counter
from collections.abc import Sequence

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from hangwatch_server import logs, metrics
from hangwatch_server.security import peers
from hangwatch_server.security.peers import Network

MAX_HEAD_BYTES = 64 * 1024
HEAD_S = 10.0
MESSAGE_S = 300.0  # 64 MiB of files at 0.2 MB/s
UNREAD_S = 60.0  # 64 KiB of an answer wait for a peer: one that is asleep, or gone without a word
_log = logs.get()


class Crowd:
    """Counts the connections of each address; those of `exempt` networks are not counted."""

    def __init__(self, each: int, exempt: Sequence[Network] = ()) -> None:
        self.each, self._exempt = each, exempt
        self._open: Counter[str] = Counter()

    def enter(self, address: str) -> bool:
        """Whether there is room for one more."""
        who = _owner(address)
        if self._open[who] >= self.each and not peers.is_in(address, self._exempt):
            return False
        self._open[who] += 1
        return True

    def leave(self, address: str) -> None:
        who = _owner(address)
        self._open[who] -= 1
        if self._open[who] <= 0:
            del self._open[who]


def _owner(address: str) -> str:
    """Of IPv6 the network, since one machine may have all of its addresses."""
    if ":" not in address or address.startswith("::ffff:"):
        return address
    packed = ipaddress.IPv6Address(address.partition("%")[0]).packed
    return packed[:8].hex()


def bounded(crowd: Crowd) -> type[BoundedProtocol]:
    """The protocol whose connections are counted there; uvicorn makes one of it for each."""
    return type("CountedProtocol", (BoundedProtocol,), {"_crowd": crowd})


class BoundedProtocol(HttpToolsProtocol):
    """One connection."""

    _crowd: Crowd | None = None
    _address: str | None = None  # by which it is counted
    _is_in_head = True
    _head_bytes = 0
    _deadline: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]  # as asyncio declares it
        address = self.client[0] if self.client else ""
        if self._crowd is not None:
            if not self._crowd.enter(address):
                self._turn_away(self._crowd.each)
                return
            self._address = address
        self._expect(HEAD_S, "no request within the time for its head")

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel()
        self._cancel_unread()
        self._uncount()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self.loop.call_later(UNREAD_S, self._give_up)

    def resume_writing(self) -> None:
        self._cancel_unread()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        if self._is_in_head:
            self._head_bytes += len(data)
            if self._deadline is None:
                self._expect(HEAD_S, "the head of a request did not end in time")
        super().data_received(data)
        if self._is_in_head and self._head_bytes > MAX_HEAD_BYTES:
            self._refuse(431, "Request Header Fields Too Large", "a request's head is too large")

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._head_bytes = 0
        self._expect(MESSAGE_S, "the body of a request did not end in time")
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._is_in_head = True
        self._head_bytes = 0
        self._cancel()
        super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        self._uncount()  # from here on `ingest` has its own limits
        self._cancel()
        self._cancel_unread()
        super().handle_websocket_upgrade()

    def _expect(self, within_s: float, why: str) -> None:
        self._cancel()
        self._deadline = self.loop.call_later(within_s, self._refuse, 408, "Request Timeout", why)

    def _cancel(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _cancel_unread(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _uncount(self) -> None:
        if self._crowd is not None and self._address is not None:
            self._crowd.leave(self._address)
            self._address = None

    def _turn_away(self, each: int) -> None:
        metrics.connections_refused.labels(status="503").inc()
        client = self.client and self.client[0]
        _log.warning("connection_refused", client=client, why=f"it has {each} open already")
        words = f"this address has {each} connections open, as many as one may: close some\n"
        head = (
            "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 5\r\n"
            f"content-type: text/plain; charset=utf-8\r\ncontent-length: {len(words)}\r\n\r\n"
        )
        self.transport.write((head + words).encode())
        self.transport.close()

    def _give_up(self) -> None:
        """At once: what is left unread would be waited for by a close in good order."""
        metrics.connections_refused.labels(status="unread").inc()
        client = self.client and self.client[0]
        _log.info("connection_given_up", client=client, why="its peer does not read the answer")
        self.transport.abort()

    def _refuse(self, status: int, phrase: str, why: str) -> None:
        self._cancel()
        if self.transport.is_closing():
            return
        metrics.connections_refused.labels(status=str(status)).inc()
        _log.info("connection_refused", client=self.client and self.client[0], why=why)
        # Of a body that drags on the application speaks, or has spoken already.
        if self._is_in_head and (self.cycle is None or self.cycle.response_complete):
            head = f"HTTP/1.1 {status} {phrase}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
            self.transport.write(head.encode())
        self.transport.close()
