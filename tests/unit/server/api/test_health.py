"""What a server says of itself while it does not hear the others."""

from __future__ import annotations

import asyncio
import contextlib
from types import SimpleNamespace

import pytest
from fastapi import Response

from hangwatch_server.api import health
from hangwatch_server.background import Background
from hangwatch_server.relay import Alone
from hangwatch_server.settings import ServerSettings

pytestmark = pytest.mark.anyio


class Missing(Alone):
    def __init__(self, text: str) -> None:
        self._text = text

    def missing(self) -> str:
        return self._text


@pytest.mark.parametrize(
    ("url", "missing", "status", "redis"),
    [
        ("", "", "ready", "off"),
        ("redis://localhost", "", "ready", "ok"),
        ("redis://localhost", "Redis is away.", "degraded", "Redis is away."),
    ],
)
async def test_server_without_its_redis_is_degraded_and_still_ready_for_requests(
    url: str, missing: str, status: str, redis: str
) -> None:
    async def ping() -> None: ...

    house = SimpleNamespace(
        db=SimpleNamespace(ping=ping),
        background=Background(),
        settings=ServerSettings(redis_url=url),
        relay=Missing(missing),
        presence=SimpleNamespace(missing=lambda: ""),
        leaving=SimpleNamespace(is_on=False),
    )
    response = Response()

    found = await health.readyz(response, house)  # type: ignore[arg-type]

    assert (found.status, found.redis, response.status_code) == (status, redis, 200)


@pytest.mark.parametrize(
    ("exclude", "stopping", "status", "code"),
    [
        ((), False, "not ready", 503),
        (("background",), False, "not ready", 503),
        (("database",), False, "degraded", 200),
        (("database", "background"), False, "degraded", 200),
        (("database", "background"), True, "not ready", 503),
    ],
)
async def test_proxy_may_leave_out_what_all_servers_share_and_never_that_one_stops(
    exclude: tuple[health.Shared, ...], stopping: bool, status: str, code: int
) -> None:
    async def ping() -> None:
        assert "database" not in exclude, "what does not count is not asked"
        raise OSError("nobody there")

    house = SimpleNamespace(
        db=SimpleNamespace(ping=ping),
        background=Background(),
        settings=ServerSettings(),
        relay=Alone(),
        presence=SimpleNamespace(missing=lambda: "nobody there"),
        leaving=SimpleNamespace(is_on=stopping),
    )
    response = Response()

    found = await health.readyz(response, house, exclude)  # type: ignore[arg-type]

    assert (found.status, found.database) == (status, "nobody there")
    assert response.status_code == code


async def test_database_that_does_not_even_end_a_query_keeps_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    is_over = asyncio.Event()

    async def ping() -> None:
        while not is_over.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await is_over.wait()

    monkeypatch.setattr(health, "READY_TIMEOUT_S", 0.01)
    house = SimpleNamespace(
        db=SimpleNamespace(ping=ping),
        background=Background(),
        settings=ServerSettings(),
        relay=Alone(),
        presence=SimpleNamespace(missing=lambda: ""),
        leaving=SimpleNamespace(is_on=False),
    )
    response = Response()

    found = await health.readyz(response, house)  # type: ignore[arg-type]

    is_over.set()
    assert (found.database, response.status_code) == ("no answer within 0.01 s", 503)
