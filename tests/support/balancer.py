"""A load balancer before several servers, as small as one can be: connections go in turn to those
whose /readyz answers 200, and stay where they are."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
from collections.abc import Coroutine, Iterator
from urllib.parse import urlsplit

import httpx

ASK_EVERY_S = 0.5
CHUNK_BYTES = 64 * 1024


class Balancer:
    """In an event loop of its own thread; `servers` may be changed at any time."""

    def __init__(self) -> None:
        self.servers: list[str] = []
        self.ready: tuple[str, ...] = ()
        self.port = 0
        self._turns = itertools.count()
        self._open: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._stopped = asyncio.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @classmethod
    @contextlib.contextmanager
    def before(cls, *servers: str) -> Iterator[Balancer]:
        made = cls()
        made.servers = list(servers)
        thread = threading.Thread(target=made._loop.run_until_complete, args=(made._run(),))
        thread.start()
        made._started.wait(30)
        try:
            yield made
        finally:
            made._loop.call_soon_threadsafe(made._stopped.set)
            thread.join(30)
            made._loop.close()

    async def _run(self) -> None:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024)
        self.port = server.sockets[0].getsockname()[1]
        asking = asyncio.create_task(self._ask_for_ever())
        self._started.set()
        await self._stopped.wait()
        asking.cancel()
        server.close()
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

    async def _ask_for_ever(self) -> None:
        async with httpx.AsyncClient(timeout=5, trust_env=False) as client:
            while True:
                servers = list(self.servers)
                found = await asyncio.gather(*(_is_ready(client, url) for url in servers))
                self.ready = tuple(url for url, ready in zip(servers, found, strict=True) if ready)
                await asyncio.sleep(ASK_EVERY_S)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ready = self.ready
        with contextlib.ExitStack() as ends:
            ends.callback(writer.close)
            if not ready:
                return
            parts = urlsplit(ready[next(self._turns) % len(ready)])
            try:
                there = await asyncio.open_connection(parts.hostname, parts.port)
            except OSError:
                return
            ends.callback(there[1].close)
            await self._join(_carry(reader, there[1]), _carry(there[0], writer))

    async def _join(self, *ways: Coroutine[None, None, None]) -> None:
        """Both ways, until one of them has ended."""
        tasks = {asyncio.create_task(way) for way in ways}
        self._open |= tasks  # else nobody holds them while both sides are silent
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._open -= tasks


async def _is_ready(client: httpx.AsyncClient, url: str) -> bool:
    try:
        return (await client.get(f"{url}/readyz")).status_code == 200
    except httpx.HTTPError:
        return False


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError, RuntimeError):
        if writer.can_write_eof() and not writer.is_closing():
            writer.write_eof()
