"""Browser sessions as rows. Only the hash of a cookie is stored; `security` makes and checks it.

A session stands either for a token, and is then as good as that, or for a person whom somebody
else has signed in: an identity provider or a proxy.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, delete, func, insert, select, update

from hangwatch_server.db import paging
from hangwatch_server.db.engine import Database
from hangwatch_server.db.tables import sessions

KEPT_AFTER_END = timedelta(days=7)  # for people to see; the audit trail keeps who signed in


class SessionKind(StrEnum):
    """Who vouches for the person behind a session."""

    TOKEN = "token"  # noqa: S105  (a kind, no secret)
    OIDC = "oidc"
    PROXY = "proxy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    id: str
    kind: SessionKind
    who: str
    scopes: tuple[str, ...]  # of a person; those of a token are the token's own
    token: str | None  # id of the token that it stands for
    address: str  # from which it was begun
    created_at: datetime
    last_used_at: datetime
    expires_at: datetime
    is_over: bool


async def create(
    db: Database,
    *,
    secret_hash: str,
    kind: SessionKind,
    who: str,
    scopes: tuple[str, ...],
    token: str | None,
    address: str,
    lifetime_s: float,
) -> Session:
    """Begin a session; those long over are removed meanwhile."""
    now = func.clock_timestamp()
    statement = insert(sessions).values(
        id=secrets.token_hex(6),
        secret_hash=secret_hash,
        kind=kind.value,
        who=who,
        scopes=list(scopes),
        token=token,
        address=address,
        created_at=now,
        last_used_at=now,
        expires_at=now + timedelta(seconds=lifetime_s),
    )
    is_old = func.least(sessions.c.expires_at, sessions.c.ended_at) < now - KEPT_AFTER_END
    async with db.begin() as connection:
        await connection.execute(delete(sessions).where(is_old))
        return _session((await connection.execute(statement.returning(sessions, _over()))).one())


async def find_by_hash(db: Database, secret_hash: str) -> Session | None:
    """The session with this hash, also one that is over."""
    statement = select(sessions, _over()).where(sessions.c.secret_hash == secret_hash)
    async with db.begin() as connection:
        row = (await connection.execute(statement)).first()
    return None if row is None else _session(row)


async def list_page(
    db: Database, *, limit: int = 100, before: str | None = None
) -> tuple[list[Session], str | None]:
    """Sessions that are not over, newest first; next cursor or None."""
    size = paging.bounded(limit)
    statement = (
        select(sessions, _over())
        .where(_is_live())
        .order_by(sessions.c.created_at.desc(), sessions.c.id.desc())
        .limit(size + 1)
    )
    if before is not None:
        statement = statement.where(paging.is_before(sessions.c.created_at, sessions.c.id, before))
    async with db.begin() as connection:
        rows = (await connection.execute(statement)).all()
    page = [_session(row) for row in rows[:size]]
    is_last = len(rows) <= size
    return page, None if is_last else paging.cursor(page[-1].created_at, page[-1].id)


async def end(db: Database, session_id: str) -> Session | None:
    """End a live session now; None when there is none with this id."""
    statement = (
        update(sessions)
        .where(sessions.c.id == session_id, _is_live())
        .values(ended_at=func.clock_timestamp())
        .returning(sessions, _over())
    )
    async with db.begin() as connection:
        row = (await connection.execute(statement)).first()
    return None if row is None else _session(row)


async def touch(db: Database, session_id: str) -> None:
    """Note that the session was used just now."""
    used = {"last_used_at": func.clock_timestamp()}
    async with db.begin() as connection:
        await connection.execute(update(sessions).where(sessions.c.id == session_id).values(**used))


def _is_live() -> ColumnElement[bool]:
    return and_(sessions.c.ended_at.is_(None), sessions.c.expires_at > func.clock_timestamp())


def _over() -> ColumnElement[bool]:
    return (~_is_live()).label("is_over")


def _session(row: Row[Any]) -> Session:  # Any: a row of many column types
    return Session(
        id=row.id,
        kind=SessionKind(row.kind),
        who=row.who,
        scopes=tuple(row.scopes),
        token=row.token,
        address=row.address,
        created_at=row.created_at,
        last_used_at=row.last_used_at,
        expires_at=row.expires_at,
        is_over=row.is_over,
    )
