"""Who is taken for dead: a server whose lease has run out, by one that could renew its own."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from tests.integration.core.waiting import until

from hangwatch_server.db import leases
from hangwatch_server.db.engine import Database
from hangwatch_server.relay.presence import Presence

pytestmark = [pytest.mark.integration, pytest.mark.anyio]


async def test_server_is_dead_only_to_one_that_has_renewed_its_own_lease_all_along(
    db: Database,
) -> None:
    await leases.claim(db, "replica two", "two", 0)
    presence = Presence(db, "one", 0.3)
    at_first = await presence.is_alive("two")

    task = asyncio.create_task(presence.run())
    await until(lambda: presence.is_alive("two"), lambda is_alive: not is_alive)
    living = await presence.living()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task

    assert at_first
    assert living == {"one"}
    assert await leases.held(db, "replica ") == []
