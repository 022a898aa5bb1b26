"""The progress of each job as one row: the last half hour that it was seen, in few points.

Ages are counted from the row's own time, which the database's clock tells both when it is written
and when it is read.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import IntegrityError

from hangwatch_server.db import codec, leases
from hangwatch_server.db.engine import Database
from hangwatch_server.db.leases import Lease
from hangwatch_server.db.tables import job_timelines
from hangwatch_server.errors import NotFoundError
from hangwatch_server.model import State, TimelinePoint


class _Stored(msgspec.Struct, array_like=True, frozen=True):
    """A point without its names, which would be most of the row."""

    ago_s: float
    calls_per_s: float
    state: State
    phase: str
    attempt: int


async def save(
    db: Database, job: str, points: Sequence[TimelinePoint], lease: Lease | None = None
) -> None:
    """Put these points in the place of what is stored; the job must have been saved.

    Raises NotFoundError when the job is not, or no longer, stored; StaleLeaseError where a lease is
    given that is no longer the newest.
    """
    rows = [
        _Stored(point.ago_s, point.calls_per_s, point.state, point.phase, point.attempt)
        for point in points
    ]
    new = insert(job_timelines).values(job=job, at=func.clock_timestamp(), points=rows)
    try:
        async with db.begin() as connection:
            await leases.check(connection, lease)
            await connection.execute(
                new.on_conflict_do_update(
                    index_elements=[job_timelines.c.job],
                    set_={"at": new.excluded.at, "points": new.excluded.points},
                )
            )
    except IntegrityError as error:
        raise NotFoundError(f"job {job} is not stored: it was deleted, or never saved") from error


async def find(db: Database, job: str) -> tuple[TimelinePoint, ...]:
    """Oldest first, as old as they are now; () for a job without any."""
    age = func.extract("epoch", func.clock_timestamp() - job_timelines.c.at)
    statement = select(job_timelines.c.points, age).where(job_timelines.c.job == job)
    async with db.begin() as connection:
        row = (await connection.execute(statement)).one_or_none()
    if row is None:
        return ()
    points, age_s = row
    return tuple(
        TimelinePoint(
            ago_s=round(one.ago_s + float(age_s), 1),
            calls_per_s=one.calls_per_s,
            state=one.state,
            phase=one.phase,
            attempt=one.attempt,
        )
        for one in codec.restore(points, list[_Stored])
    )
