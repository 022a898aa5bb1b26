"""Tokens as rows. Only hashes are stored; `security` makes and checks the token text."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, func, insert, or_, select, update

from hangwatch_server.db.engine import Database
from hangwatch_server.db.tables import tokens

MAX_TOKENS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    id: str
    name: str
    prefix: str
    scopes: tuple[str, ...]
    node: str | None  # an agent's token speaks for this node only
    created_at: datetime
    last_used_at: datetime | None
    expires_at: datetime | None
    is_revoked: bool


async def create(
    db: Database,
    name: str,
    scopes: Collection[str],
    node: str | None = None,
    expires_at: datetime | None = None,
    *,
    secret_hash: str,
    prefix: str,
) -> Token:
    statement = insert(tokens).values(
        id=secrets.token_hex(6),
        name=name,
        prefix=prefix,
        secret_hash=secret_hash,
        scopes=list(scopes),
        node=node,
        created_at=func.clock_timestamp(),
        expires_at=expires_at,
    )
    async with db.begin() as connection:
        return _token((await connection.execute(statement.returning(tokens))).one())


async def find_by_hash(db: Database, secret_hash: str) -> Token | None:
    """The token with this hash, revoked and expired ones too: the caller says which it was."""
    statement = select(tokens).where(tokens.c.secret_hash == secret_hash)
    async with db.begin() as connection:
        row = (await connection.execute(statement)).first()
    return None if row is None else _token(row)


async def find(db: Database, token_id: str) -> Token | None:
    async with db.begin() as connection:
        row = (await connection.execute(select(tokens).where(tokens.c.id == token_id))).first()
    return None if row is None else _token(row)


async def list_all(db: Database) -> list[Token]:
    """All tokens, newest first."""
    statement = select(tokens).order_by(tokens.c.created_at.desc(), tokens.c.id).limit(MAX_TOKENS)
    async with db.begin() as connection:
        return [_token(row) for row in (await connection.execute(statement)).all()]


async def revoke(db: Database, token_id: str) -> bool:
    """False when there is no such token; revoking twice is fine."""
    statement = (
        update(tokens)
        .where(tokens.c.id == token_id)
        .values(revoked_at=func.coalesce(tokens.c.revoked_at, func.clock_timestamp()))
    )
    async with db.begin() as connection:
        return (await connection.execute(statement)).rowcount == 1


async def good(db: Database, token_ids: Collection[str]) -> frozenset[str]:
    """Which of these tokens exist, and are neither revoked nor expired."""
    statement = select(tokens.c.id).where(
        tokens.c.id.in_(token_ids),
        tokens.c.revoked_at.is_(None),
        or_(tokens.c.expires_at.is_(None), tokens.c.expires_at > func.clock_timestamp()),
    )
    async with db.begin() as connection:
        return frozenset((await connection.execute(statement)).scalars())


async def touch(db: Database, token_id: str) -> None:
    """Note that the token was used just now."""
    statement = (
        update(tokens).where(tokens.c.id == token_id).values(last_used_at=func.clock_timestamp())
    )
    async with db.begin() as connection:
        await connection.execute(statement)


async def count(db: Database) -> int:
    """How many tokens were ever made: zero means a first start."""
    async with db.begin() as connection:
        return (await connection.execute(select(func.count()).select_from(tokens))).scalar_one()


def _token(row: Row[Any]) -> Token:  # Any: a row of many column types
    return Token(
        id=row.id,
        name=row.name,
        prefix=row.prefix,
        scopes=tuple(row.scopes),
        node=row.node,
        created_at=row.created_at,
        last_used_at=row.last_used_at,
        expires_at=row.expires_at,
        is_revoked=row.revoked_at is not None,
    )
