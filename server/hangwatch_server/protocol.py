"""HTTP as uvicorn speaks it, with the bounds that it lacks: on the head of a request, in bytes and
in seconds, on the time that a whole request takes to arrive, and on that in which its answer must
be read.

Without them a peer that sends half a head and then nothing holds its connection for ever, one that
never ends its head fills the memory, and one that reads no more of its answer keeps the place of
whoever could be served instead. The limits are far beyond what any browser or client of
ours needs; a proxy in front has its own, and usually closer ones.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from hangwatch_server import logs, metrics

MAX_HEAD_BYTES = 64 * 1024
HEAD_S = 10.0
MESSAGE_S = 300.0  # 64 MiB of files at 0.2 MB/s
UNREAD_S = 60.0  # 64 KiB of an answer wait for a peer: one that is asleep, or gone without a word
_log = logs.get()


class BoundedProtocol(HttpToolsProtocol):
    """One connection."""

    _is_in_head = True
    _head_bytes = 0
    _deadline: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)  # type: ignore[arg-type]  # as asyncio declares it
        self._expect(HEAD_S, "no request within the time for its head")

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel()
        self._cancel_unread()
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
        self._cancel()  # from here on `ingest` has its own limits
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
