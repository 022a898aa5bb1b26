"""Silences as rows. Which one is on, and what it means, `alerts.matching` says."""

from __future__ import annotations

import secrets
from typing import Any

from sqlalchemy import Row, and_, func, insert, not_, or_, select, update

from hangwatch_server.db import codec, paging
from hangwatch_server.db.engine import Database
from hangwatch_server.db.tables import silences
from hangwatch_server.model.alerts import Matcher, Repeat, Silence

MAX_STANDING = 1000
_IS_OVER = or_(
    silences.c.cancelled_at.is_not(None),
    and_(silences.c.repeat == Repeat.ONCE.value, silences.c.ends_at <= func.now()),
)


async def create(db: Database, silence: Silence) -> Silence:
    """Keep a new silence; its id and time are given here."""
    statement = insert(silences).values(
        id=secrets.token_hex(6),
        matchers=list(silence.matchers),
        starts_at=silence.starts_at,
        ends_at=silence.ends_at,
        repeat=silence.repeat.value,
        created_at=func.clock_timestamp(),
        created_by=silence.created_by,
        comment=silence.comment,
    )
    async with db.begin() as connection:
        return _silence((await connection.execute(statement.returning(silences))).one())


async def standing(db: Database) -> list[Silence]:
    """Those that are on now or will be, the ones that began first in front."""
    statement = (
        select(silences)
        .where(not_(_IS_OVER))
        .order_by(silences.c.starts_at, silences.c.id)
        .limit(MAX_STANDING)
    )
    async with db.begin() as connection:
        return [_silence(row) for row in (await connection.execute(statement)).all()]


async def count_standing(db: Database) -> int:
    statement = select(func.count()).select_from(silences).where(not_(_IS_OVER))
    async with db.begin() as connection:
        return (await connection.execute(statement)).scalar_one()


async def find(db: Database, silence_id: str) -> Silence | None:
    async with db.begin() as connection:
        row = (
            await connection.execute(select(silences).where(silences.c.id == silence_id))
        ).first()
    return None if row is None else _silence(row)


async def list_page(
    db: Database, *, is_over: bool | None = None, limit: int = 50, before: str | None = None
) -> tuple[list[Silence], str | None]:
    """Newest first; next cursor or None. Only those that are over, or that are not, if asked."""
    size = paging.bounded(limit)
    statement = (
        select(silences)
        .order_by(silences.c.created_at.desc(), silences.c.id.desc())
        .limit(size + 1)
    )
    if is_over is not None:
        statement = statement.where(_IS_OVER if is_over else not_(_IS_OVER))
    if before is not None:
        statement = statement.where(paging.is_before(silences.c.created_at, silences.c.id, before))
    async with db.begin() as connection:
        rows = (await connection.execute(statement)).all()
    page = [_silence(row) for row in rows[:size]]
    is_last = len(rows) <= size
    return page, None if is_last else paging.cursor(page[-1].created_at, page[-1].id)


async def cancel(db: Database, silence_id: str) -> Silence | None:
    """End it now; again is no error. None when there is no such silence."""
    statement = (
        update(silences)
        .where(silences.c.id == silence_id)
        .values(cancelled_at=func.coalesce(silences.c.cancelled_at, func.clock_timestamp()))
        .returning(silences)
    )
    async with db.begin() as connection:
        row = (await connection.execute(statement)).first()
    return None if row is None else _silence(row)


def _silence(row: Row[Any]) -> Silence:  # Any: a row of many column types
    return Silence(
        id=row.id,
        matchers=tuple(codec.restore(item, Matcher) for item in row.matchers),
        starts_at=row.starts_at,
        ends_at=row.ends_at,
        repeat=Repeat(row.repeat),
        created_at=row.created_at,
        created_by=row.created_by,
        comment=row.comment,
        cancelled_at=row.cancelled_at,
    )
