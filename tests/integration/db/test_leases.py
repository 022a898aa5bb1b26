"""Leases against a real Postgres: one holder at a time, and a token that fences the one before."""

from __future__ import annotations

import pytest

from hangwatch_server.db import leases
from hangwatch_server.db.engine import Database
from hangwatch_server.errors import StaleLeaseError

pytestmark = [pytest.mark.integration, pytest.mark.anyio]


async def test_lease_that_is_held_is_refused_to_another(db: Database) -> None:
    first = await leases.claim(db, "job", "server-a", 30)

    assert first is not None
    assert await leases.claim(db, "job", "server-b", 30) is None


async def test_holder_that_claims_again_keeps_its_token(db: Database) -> None:
    first = await leases.claim(db, "job", "server-a", 30)
    again = await leases.claim(db, "job", "server-a", 30)

    assert first == again


async def test_token_rises_when_the_lease_changes_hands(db: Database) -> None:
    first = await leases.claim(db, "job", "server-a", 0)
    second = await leases.claim(db, "job", "server-b", 30)

    assert first is not None
    assert second is not None
    assert second.token > first.token


async def test_token_rises_when_a_holder_comes_back_after_another(db: Database) -> None:
    first = await leases.claim(db, "job", "server-a", 0)
    await leases.claim(db, "job", "server-b", 0)
    back = await leases.claim(db, "job", "server-a", 30)

    assert first is not None
    assert back is not None
    assert back.token > first.token + 1


async def test_old_holder_can_neither_renew_nor_write(db: Database) -> None:
    old = await leases.claim(db, "job", "server-a", 0)
    await leases.claim(db, "job", "server-b", 30)

    assert old is not None
    assert not await leases.renew(db, old, 30)
    with pytest.raises(StaleLeaseError):
        async with db.begin() as connection:
            await leases.check(connection, old)


async def test_lease_that_ran_out_unclaimed_can_be_renewed(db: Database) -> None:
    lease = await leases.claim(db, "job", "server-a", 0)

    assert lease is not None
    assert await leases.renew(db, lease, 30)
    assert await leases.claim(db, "job", "server-b", 30) is None


async def test_released_lease_is_free_at_once_and_fences_its_old_holder(db: Database) -> None:
    lease = await leases.claim(db, "job", "server-a", 30)
    assert lease is not None

    await leases.release(db, lease)

    assert not await leases.renew(db, lease, 30)
    assert await leases.claim(db, "job", "server-b", 30) is not None
