"""A real HTTP server that answers what a test tells it to, and remembers what it was asked."""

from __future__ import annotations

import contextlib
import http.server
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer; status 0 cuts the connection instead."""

    status: int = 200
    body: bytes = b"{}"
    headers: tuple[tuple[str, str], ...] = ()


CUT = Reply(status=0)


@dataclass(slots=True)
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class ScriptedServer:
    url: str
    asked: list[Asked] = field(default_factory=list)


@contextlib.contextmanager
def answering(replies: Sequence[Reply]) -> Iterator[ScriptedServer]:
    """Gives these replies one after the other; the last one again and again."""
    left = list(replies)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            size = int(self.headers.get("content-length", 0))
            told.asked.append(
                Asked(self.command, self.path, dict(self.headers.items()), self.rfile.read(size))
            )
            reply = left.pop(0) if len(left) > 1 else left[0]
            if reply.status == 0:
                self.close_connection = True
                return
            self.send_response(reply.status)
            for name, value in (("content-length", str(len(reply.body))), *reply.headers):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.body)

        do_POST = do_GET
        do_DELETE = do_GET

        def log_message(self, *_: object) -> None:
            """Silent."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        told = ScriptedServer(f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield told
        finally:
            server.shutdown()
            thread.join()
