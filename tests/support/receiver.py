"""A real HTTP server in a thread that keeps what it is sent, and answers as it is told."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Request:
    path: str
    headers: dict[str, str]  # names in lower case
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Reply:
    status: int = 200
    body: str = "ok"
    headers: Mapping[str, str] | None = None


class Receiver:
    """`requests` in the order of their arrival; `replies` are given in turn, the last for ever."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.requests: list[Request] = []
        self._replies: list[Reply] = [Reply()]
        self._by_path: dict[str, list[Reply]] = {}
        self._lock = threading.Lock()
        self._goes_on = threading.Event()
        self._goes_on.set()

    def answer(self, status: int, body: str = "", headers: Mapping[str, str] | None = None) -> None:
        self.answer_in_turn(Reply(status, body, headers))

    def answer_in_turn(self, *replies: Reply, path: str = "") -> None:
        """For all paths that end so; "" for those of which nothing else is said."""
        with self._lock:
            if path:
                self._by_path[path] = list(replies)
            else:
                self._replies = list(replies)

    def hold(self) -> None:
        """Take requests and answer none of them, until `go_on`."""
        self._goes_on.clear()

    def go_on(self) -> None:
        self._goes_on.set()

    def to(self, path: str) -> list[Request]:
        return [request for request in self.requests if request.path.endswith(path)]

    def take(self, request: Request) -> Reply:
        with self._lock:
            self.requests.append(request)
        self._goes_on.wait(60)
        with self._lock:
            ending = next((end for end in self._by_path if request.path.endswith(end)), "")
            replies = self._by_path[ending] if ending else self._replies
            return replies.pop(0) if len(replies) > 1 else replies[0]

    @classmethod
    @contextlib.contextmanager
    def started(cls, port: int = 0) -> Iterator[Receiver]:
        server = ThreadingHTTPServer(("127.0.0.1", port), _Handler)
        receiver = server.receiver = cls(server.server_address[1])  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield receiver
        finally:
            receiver.go_on()
            server.shutdown()
            server.server_close()
            thread.join(5)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        with contextlib.suppress(ConnectionError):  # the other side may have gone meanwhile
            self._reply()

    def _reply(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        reply = self.server.receiver.take(Request(self.path, headers, body))  # type: ignore[attr-defined]
        sent = reply.body.encode()
        self.send_response(reply.status)
        for name, value in {"content-length": str(len(sent)), **(reply.headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, format: str, *args: object) -> None:
        """A test's output is the test's."""
