"""The preview application on a free port of this machine, in a thread of its own."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import uvicorn
from fastapi import FastAPI
from tests.support import waiting
from tests.web import preview

from hangwatch_server import logs


@dataclass(frozen=True, slots=True)
class Served:
    """A running preview, which shows what `preview.show` gave it last."""

    app: FastAPI
    url: str

    def publish(self, topic: str) -> None:
        """Tell every open page that this changed; safe to call from any thread."""
        self.app.state.loop.call_soon_threadsafe(self.app.state.bus.publish, topic, {})

    def end_streams(self) -> None:
        """The open pages connect again; safe to call from any thread."""
        self.app.state.loop.call_soon_threadsafe(self.app.state.bus.close)


@contextlib.contextmanager
def running() -> Iterator[Served]:
    logs.configure("warning")  # without it a traceback is drawn with all values, for half a minute
    app = preview.build()
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    waiting.until(lambda: server.started, 60, "the preview server starts")
    served = Served(app, f"http://127.0.0.1:{listening.getsockname()[1]}")
    try:
        yield served
    finally:
        served.end_streams()  # the server need not wait for them
        server.should_exit = True
        thread.join(60)
        listening.close()
