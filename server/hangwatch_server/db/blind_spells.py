"""When the monitor was blind, as rows; and the jobs that it should see."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from datetime import timedelta
from typing import Any

from sqlalchemy import Row, func, select, text, update
from sqlalchemy.dialects.postgresql import insert as upsert

from hangwatch_server.db.engine import Database
from hangwatch_server.db.tables import blind_spells
from hangwatch_server.model.alerts import BlindCause, BlindSpell

MAX_SPELLS = 1000


async def begin(
    db: Database, cause: BlindCause, subject: str, job_name: str, words: str, age_s: float
) -> None:
    """One is active per cause and subject: of several servers that begin it, the first does."""
    await _insert(db, cause, subject, job_name, words, age_s, is_over=False)


async def record(db: Database, cause: BlindCause, words: str, length_s: float) -> None:
    """One that is over already."""
    await _insert(db, cause, "", "", words, length_s, is_over=True)


async def end(db: Database, spell_id: str, reason: str) -> None:
    """`reason`: why nothing is waited for any more; "" where it is seen again."""
    statement = (
        update(blind_spells)
        .where(blind_spells.c.id == spell_id, blind_spells.c.ended_at.is_(None))
        .values(ended_at=func.clock_timestamp(), end_reason=reason)
    )
    async with db.begin() as connection:
        await connection.execute(statement)


async def to_tell(db: Database) -> list[BlindSpell]:
    """Those that stand, and those that are over of which people were not told yet."""
    statement = (
        select(blind_spells)
        .where(blind_spells.c.told_at.is_(None))
        .order_by(blind_spells.c.began_at)
        .limit(MAX_SPELLS)
    )
    async with db.begin() as connection:
        return [_spell(row) for row in (await connection.execute(statement)).all()]


async def close(db: Database, spell_ids: Collection[str]) -> None:
    """Nothing more is to be told of these."""
    statement = (
        update(blind_spells).where(blind_spells.c.id.in_(spell_ids)).values(told_at=func.now())
    )
    async with db.begin() as connection:
        await connection.execute(statement)


async def close_over(db: Database) -> None:
    """All that are over, though nobody was told of them."""
    statement = (
        update(blind_spells)
        .where(blind_spells.c.told_at.is_(None), blind_spells.c.ended_at.is_not(None))
        .values(told_at=func.now())
    )
    async with db.begin() as connection:
        await connection.execute(statement)


async def _insert(
    db: Database,
    cause: BlindCause,
    subject: str,
    job_name: str,
    words: str,
    age_s: float,
    *,
    is_over: bool,
) -> None:
    statement = (
        upsert(blind_spells)
        .values(
            id=secrets.token_hex(6),
            cause=cause.value,
            subject=subject,
            job_name=job_name,
            text=words,
            began_at=func.clock_timestamp() - timedelta(seconds=age_s),
            ended_at=func.clock_timestamp() if is_over else None,
        )
        .on_conflict_do_nothing(
            index_elements=["cause", "subject"], index_where=text("ended_at IS NULL")
        )
    )
    async with db.begin() as connection:
        await connection.execute(statement)


def _spell(row: Row[Any]) -> BlindSpell:  # Any: a row of many column types
    return BlindSpell(
        id=row.id,
        cause=BlindCause(row.cause),
        subject=row.subject,
        job_name=row.job_name,
        text=row.text,
        began_at=row.began_at,
        ended_at=row.ended_at,
        end_reason=row.end_reason,
    )
