"""A real server without its doors for people: services on Postgres, agents' socket, real uvicorn.

Its clock can run faster than the world's, so that limits of many seconds pass in a test.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import uvicorn
from fastapi import FastAPI

from hangwatch_agent import wire
from hangwatch_server import lifespan, serve
from hangwatch_server.ingest import socket as agents
from hangwatch_server.security import TokenRequest
from hangwatch_server.services import Services
from hangwatch_server.settings import ServerSettings


class FastClock:
    """A clock that runs `speed` times as fast as the machine's."""

    def __init__(self, speed: float = 1.0) -> None:
        self._speed = speed
        self._start_s = time.monotonic()

    def monotonic_s(self) -> float:
        return self._start_s + (time.monotonic() - self._start_s) * self._speed

    def now(self) -> datetime:
        return datetime.now(UTC)


@dataclass(frozen=True)
class House:
    services: Services
    url: str
    clock: FastClock

    async def token(self, node: str) -> str:
        """A new agent's token for this node."""
        wanted = TokenRequest(name=f"agent {node}", scopes=("agent",), node=node)
        _, text = await self.services.tokens.create(wanted)
        return text


def settings_of(database_url: str, **changes: object) -> ServerSettings:
    return ServerSettings(database_url=database_url, **{"tick_s": 0.05, **changes})  # type: ignore[arg-type]


@asynccontextmanager
async def open_house(
    database_url: str, speed: float = 1.0, **changes: object
) -> AsyncIterator[House]:
    """Services and a socket on a free port, in this event loop."""
    clock = FastClock(speed)
    app = FastAPI()
    app.include_router(agents.router)
    async with lifespan.running(settings_of(database_url, **changes), clock) as services:
        app.state.services = services
        with serve.listen("127.0.0.1", 0) as listener:
            server = uvicorn.Server(
                uvicorn.Config(
                    app,
                    ws="websockets-sansio",
                    ws_max_size=wire.MAX_FRAME_BYTES,
                    lifespan="off",
                    log_config=None,
                    timeout_graceful_shutdown=2,
                )
            )
            task = asyncio.create_task(server.serve(sockets=[listener]))
            port = listener.getsockname()[1]
            try:
                yield House(services, f"ws://127.0.0.1:{port}/api/v1/agent/stream", clock)
            finally:
                server.should_exit = True
                await services.hub.close_all("the test is over")
                await task
