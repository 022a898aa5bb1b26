"""Who did what: captures, acknowledgements, tokens, deletions. Rows are only ever added."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, insert, select

from hangwatch_server.db import paging
from hangwatch_server.db.engine import Database
from hangwatch_server.db.tables import audit
from hangwatch_server.errors import BadCursorError


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    at: datetime
    who: str  # token name
    action: str  # "capture", "acknowledge", "token.create", …
    subject: str  # what it was done to: an id
    detail: str


async def record(db: Database, who: str, action: str, subject: str, detail: str = "") -> None:
    statement = insert(audit).values(
        at=func.clock_timestamp(), who=who, action=action, subject=subject, detail=detail
    )
    async with db.begin() as connection:
        await connection.execute(statement)


async def list_page(
    db: Database, *, limit: int = 50, before: str | None = None
) -> tuple[list[AuditRow], str | None]:
    """The newest rows first; next cursor or None."""
    size = paging.bounded(limit)
    statement = select(audit).order_by(audit.c.id.desc()).limit(size + 1)
    if before is not None:
        if not before.isascii() or not before.isdigit() or len(before) > 18:
            raise BadCursorError(before)
        statement = statement.where(audit.c.id < int(before))
    async with db.begin() as connection:
        rows = (await connection.execute(statement)).all()
    page = [
        AuditRow(at=row.at, who=row.who, action=row.action, subject=row.subject, detail=row.detail)
        for row in rows[:size]
    ]
    return page, str(rows[size - 1].id) if len(rows) > size else None
