"""Who owns a job's detection: a lease with a fencing token, by the database's clock alone.

The token rises whenever the lease changes hands. A write that carries a lease locks its row and
compares the token in its own transaction, so a replica that was paused past its time cannot write
after its successor has claimed. The pattern: M. Kleppmann, "How to do distributed locking".
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_, case, delete, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from hangwatch_server.db.engine import Database
from hangwatch_server.db.tables import lease_token, leases
from hangwatch_server.errors import StaleLeaseError


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    job: str
    holder: str  # unique to one run of one server process
    token: int


async def claim(db: Database, job: str, holder: str, ttl_s: float) -> Lease | None:
    """Take the lease if it is free, run out or already ours; None while another holds it."""
    new = insert(leases).values(
        job=job, holder=holder, token=lease_token.next_value(), expires_at=_after(ttl_s)
    )
    is_ours = leases.c.holder == new.excluded.holder
    is_over = leases.c.expires_at <= func.clock_timestamp()
    risen = func.greatest(leases.c.token + 1, new.excluded.token)
    statement = new.on_conflict_do_update(
        index_elements=[leases.c.job],
        set_={
            "holder": new.excluded.holder,
            "token": case((and_(is_ours, ~is_over), leases.c.token), else_=risen),
            "expires_at": new.excluded.expires_at,
        },
        where=or_(is_ours, is_over),
    ).returning(leases.c.token)
    async with db.begin() as connection:
        token = (await connection.execute(statement)).scalar_one_or_none()
    return None if token is None else Lease(job=job, holder=holder, token=token)


async def renew(db: Database, lease: Lease, ttl_s: float) -> bool:
    """Extend the lease; False when another has claimed it since."""
    statement = update(leases).where(_is(lease)).values(expires_at=_after(ttl_s))
    async with db.begin() as connection:
        return (await connection.execute(statement)).rowcount == 1


async def release(db: Database, lease: Lease) -> None:
    """Give the lease up at once; nothing happens when it is no longer ours."""
    statement = (
        update(leases).where(_is(lease)).values(holder="", expires_at=func.clock_timestamp())
    )
    async with db.begin() as connection:
        await connection.execute(statement)


async def holder(db: Database, job: str) -> str:
    """Who holds the lease now; "" where nobody does."""
    statement = select(leases.c.holder).where(
        leases.c.job == job, leases.c.expires_at > func.clock_timestamp()
    )
    async with db.begin() as connection:
        return (await connection.execute(statement)).scalar_one_or_none() or ""


async def held(db: Database, prefix: str) -> list[str]:
    """What begins so and is held now."""
    statement = select(leases.c.job).where(
        leases.c.job.startswith(prefix, autoescape=True),
        leases.c.expires_at > func.clock_timestamp(),
    )
    async with db.begin() as connection:
        return list((await connection.execute(statement)).scalars())


async def drop(db: Database, lease: Lease) -> None:
    """Give up a lease that nobody will claim again; nothing happens when it is no longer ours."""
    async with db.begin() as connection:
        await connection.execute(delete(leases).where(_is(lease)))


async def sweep(db: Database, prefix: str, older_than_s: float) -> None:
    """Forget what begins so and ran out so long ago: nobody gave it up, and nobody claims it."""
    statement = delete(leases).where(
        leases.c.job.startswith(prefix, autoescape=True),
        leases.c.expires_at < func.clock_timestamp() - timedelta(seconds=older_than_s),
    )
    async with db.begin() as connection:
        await connection.execute(statement)


async def check(connection: AsyncConnection, lease: Lease | None) -> None:
    """Hold the lease's row until this transaction ends; raise StaleLeaseError if it is not ours.

    None for what needs no lease, as tests and imports write it.

    A lease that ran out but was claimed by nobody still counts: its token is the newest.
    """
    if lease is None:
        return
    statement = select(leases.c.job).where(_is(lease)).with_for_update(read=True)
    if (await connection.execute(statement)).first() is None:
        raise StaleLeaseError(
            f"job {lease.job} is watched by another server now (lease token {lease.token} is old): "
            "nothing was written; this server will claim it again if that one stops"
        )


def _is(lease: Lease) -> ColumnElement[bool]:
    return and_(
        leases.c.job == lease.job,
        leases.c.holder == lease.holder,
        leases.c.token == lease.token,
    )


def _after(ttl_s: float) -> ColumnElement[datetime]:
    return func.clock_timestamp() + timedelta(seconds=ttl_s)
