"""Tasks that run as long as the server: what ends is begun anew, and said to have ended."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from fastapi import Response

from hangwatch_server.api import health
from hangwatch_server.background import STEADY_S, Background
from hangwatch_server.relay import Alone
from hangwatch_server.settings import ServerSettings

pytestmark = pytest.mark.anyio


class Task:
    """Fails until it has begun `failures` times, then runs for ever."""

    def __init__(self, failures: int) -> None:
        self.begun, self.failures = 0, failures
        self.is_steady = asyncio.Event()

    async def run(self) -> None:
        self.begun += 1
        if self.begun <= self.failures:
            raise ValueError("unforeseen")
        self.is_steady.set()
        await asyncio.Event().wait()


async def test_task_that_fails_is_begun_anew_and_named_until_it_is_steady_again() -> None:
    now = [0.0]
    background = Background(retry_s=0.0, clock=lambda: now[0])
    failing, sound = Task(3), Task(0)

    background.start("watch", failing.run)
    background.start("captures", sound.run)
    async with asyncio.timeout(60):
        await failing.is_steady.wait()
        await sound.is_steady.wait()
    soon = background.failing()
    now[0] = STEADY_S
    later = background.failing()
    await background.stop()

    assert (failing.begun, sound.begun) == (4, 1)
    assert (soon, later) == (("watch",), ())


async def test_server_is_not_ready_while_one_of_its_tasks_fails() -> None:
    async def ping() -> None: ...

    background, task = Background(retry_s=0.0), Task(1)
    house = SimpleNamespace(
        db=SimpleNamespace(ping=ping),
        background=background,
        settings=ServerSettings(),
        relay=Alone(),
        presence=SimpleNamespace(missing=lambda: ""),
        leaving=SimpleNamespace(is_on=False),
    )
    before_response, response = Response(), Response()

    before = await health.readyz(before_response, house)  # type: ignore[arg-type]
    background.start("watch", task.run)
    async with asyncio.timeout(60):
        await task.is_steady.wait()
    after = await health.readyz(response, house)  # type: ignore[arg-type]
    await background.stop()

    assert (before.status, before_response.status_code) == ("ready", 200)
    assert (after.status, response.status_code) == ("not ready", 503)
    assert "watch" in after.background
    assert after.database == "ok"
