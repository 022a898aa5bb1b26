"""Moments of an incident as rows: the first ones and the newest, never more than a few."""

from __future__ import annotations

import msgspec
from sqlalchemy import delete, func, insert, select
from sqlalchemy.exc import IntegrityError

from hangwatch_server.db import codec, leases
from hangwatch_server.db.engine import Database
from hangwatch_server.db.leases import Lease
from hangwatch_server.db.tables import incident_moments
from hangwatch_server.errors import NotFoundError
from hangwatch_server.model import Moment

MAX_MOMENTS = 12


async def add(db: Database, incident: str, moment: Moment, lease: Lease | None = None) -> None:
    """Store a moment; of a full incident the last one gives way, since the first ones say most.

    Raises NotFoundError when the incident is not, or no longer, stored; StaleLeaseError where a
    lease is given that is no longer the newest.
    """
    own = select(incident_moments.c.id).where(incident_moments.c.incident == incident)
    beyond = own.order_by(incident_moments.c.id).offset(MAX_MOMENTS - 1)
    try:
        async with db.begin() as connection:
            await leases.check(connection, lease)
            await connection.execute(
                delete(incident_moments).where(incident_moments.c.id.in_(beyond))
            )
            await connection.execute(
                insert(incident_moments).values(
                    incident=incident, at=func.clock_timestamp(), moment=moment
                )
            )
    except IntegrityError as error:
        raise NotFoundError(f"there is no incident '{incident}': it was deleted") from error


async def of_incident(db: Database, incident: str) -> tuple[Moment, ...]:
    """Oldest first; one that this version cannot read is left out."""
    statement = (
        select(incident_moments.c.moment)
        .where(incident_moments.c.incident == incident)
        .order_by(incident_moments.c.id)
        .limit(MAX_MOMENTS)
    )
    async with db.begin() as connection:
        stored = (await connection.execute(statement)).scalars().all()
    return tuple(moment for row in stored if (moment := _restored(row)) is not None)


async def newest(db: Database, incident: str) -> Moment | None:
    statement = (
        select(incident_moments.c.moment)
        .where(incident_moments.c.incident == incident)
        .order_by(incident_moments.c.id.desc())
        .limit(1)
    )
    async with db.begin() as connection:
        row = (await connection.execute(statement)).scalar_one_or_none()
    return None if row is None else _restored(row)


def _restored(row: object) -> Moment | None:
    try:
        return codec.restore(row, Moment)
    except msgspec.ValidationError:
        return None
