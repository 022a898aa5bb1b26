"""Leases against a real Postgres: one holder at a time, and a token that fences the one before."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import select
from tests.support import verdicts as make

from hangwatch_server.db import jobs, leases, tables, timelines
from hangwatch_server.db.engine import Database
from hangwatch_server.errors import StaleLeaseError
from hangwatch_server.model import State, TimelinePoint

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


async def test_server_that_slept_past_its_lease_writes_nothing_of_what_it_saw_before(
    db: Database,
) -> None:
    job = make.job()
    old = await leases.claim(db, job.id, "server-a", 0)
    new = await leases.claim(db, job.id, "server-b", 30)
    now = [TimelinePoint(ago_s=1.0, calls_per_s=2.0, state=State.HUNG)]
    await jobs.save(db, job, "run-1", {0: ("node-a", 812, 7)}, new)
    await timelines.save(db, job.id, now, new)

    with pytest.raises(StaleLeaseError):
        await jobs.save(db, replace(job, reporting=1), "run-1", {0: ("node-b", 9, 9)}, old)
    with pytest.raises(StaleLeaseError):
        await timelines.save(db, job.id, [], old)

    kept, attempt = await jobs.find(db, job.id), await jobs.stored_attempt(db, job.id)
    assert kept is not None
    assert attempt is not None
    assert kept.reporting == job.reporting
    assert attempt.processes == {0: ("node-a", 812, 7)}
    assert [point.state for point in await timelines.find(db, job.id)] == [State.HUNG]


async def test_leases_that_ran_out_long_ago_are_swept_and_others_kept(db: Database) -> None:
    for name, ttl_s in (("replica a", -100.0), ("replica b", 30.0), ("job", -100.0)):
        await leases.claim(db, name, "somebody", ttl_s)

    await leases.sweep(db, "replica ", 60.0)

    assert await leases.held(db, "replica ") == ["replica b"]
    async with db.begin() as connection:
        left = (await connection.execute(select(tables.leases.c.job))).scalars().all()
    assert sorted(left) == ["job", "replica b"]
