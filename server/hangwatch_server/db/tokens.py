"""Tokens as rows. Only hashes are stored; `security` makes and checks the token text."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, func, or_, select, update
from sqlalchemy.dialects.postgresql import Insert, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from hangwatch_server.db.engine import Database
from hangwatch_server.db.tables import tokens
from hangwatch_server.errors import ConflictError

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
    jobs: str = ""  # pattern of the names of the jobs that it may see, "" for all
    nodes: str = ""  # pattern of the nodes that it may enrol
    uses_left: int | None = None  # of an enrolment token
    may_replace: bool = False  # it may enrol a node that has a live token, which then ends
    enrolled_by: str | None = None  # id of the token that an agent came by this one with


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    """What is to be stored of a token; of its text only the hash."""

    name: str
    scopes: tuple[str, ...]
    secret_hash: str = field(repr=False)
    prefix: str
    node: str | None = None
    expires_at: datetime | None = None
    jobs: str = ""
    nodes: str = ""
    uses_left: int | None = None
    may_replace: bool = False
    enrolled_by: str | None = None


async def create(db: Database, new: NewToken) -> Token:
    async with db.begin() as connection:
        return await _insert(connection, new)


async def ensure(db: Database, new: NewToken) -> None:
    """Create it unless its text is known: servers that start together all do this at once."""
    async with db.begin() as connection:
        await connection.execute(
            _insertion(new).on_conflict_do_nothing(index_elements=[tokens.c.secret_hash])
        )


async def enrol(db: Database, enrolment: Token, new: NewToken) -> Token | None:
    """The agent's token for a node, made with one use of an enrolment token.

    None when that has no use left or is no longer good. Raises ConflictError when a live token
    speaks for the node already and this enrolment token may not replace it. Enrolments of one node
    wait for each other.
    """
    async with db.begin() as connection:
        await connection.execute(select(func.pg_advisory_xact_lock(func.hashtext(new.node))))
        if not await _use(connection, enrolment.id):
            return None
        taken = and_(tokens.c.node == new.node, _is_good())
        if enrolment.may_replace:
            ended = update(tokens).where(taken).values(revoked_at=func.clock_timestamp())
            await connection.execute(ended)
        elif (await connection.execute(select(tokens.c.id).where(taken).limit(1))).first():
            raise ConflictError(
                f"node '{new.node}' has a live token already: revoke it first (`hangwatch token "
                "list`), start the agent with the token that it has, or enrol with a token made "
                "with --may-replace"
            )
        return await _insert(connection, new)


async def _use(connection: AsyncConnection, token_id: str) -> bool:
    statement = (
        update(tokens)
        .where(tokens.c.id == token_id, _is_good())
        .where(or_(tokens.c.uses_left.is_(None), tokens.c.uses_left > 0))
        .values(uses_left=tokens.c.uses_left - 1, last_used_at=func.clock_timestamp())
    )
    return (await connection.execute(statement)).rowcount == 1


async def _insert(connection: AsyncConnection, new: NewToken) -> Token:
    return _token((await connection.execute(_insertion(new).returning(tokens))).one())


def _insertion(new: NewToken) -> Insert:
    return insert(tokens).values(
        id=secrets.token_hex(6),
        created_at=func.clock_timestamp(),
        name=new.name,
        prefix=new.prefix,
        secret_hash=new.secret_hash,
        scopes=list(new.scopes),
        node=new.node,
        expires_at=new.expires_at,
        jobs=new.jobs,
        nodes=new.nodes,
        uses_left=new.uses_left,
        may_replace=new.may_replace,
        enrolled_by=new.enrolled_by,
    )


def _is_good() -> ColumnElement[bool]:
    return and_(
        tokens.c.revoked_at.is_(None),
        or_(tokens.c.expires_at.is_(None), tokens.c.expires_at > func.clock_timestamp()),
    )


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


async def revoke(db: Database, token_id: str, *, with_enrolled: bool = False) -> bool:
    """False when there is no such token; revoking twice is fine.

    `with_enrolled` ends the tokens too that agents came by with this one.
    """
    revoked = {"revoked_at": func.coalesce(tokens.c.revoked_at, func.clock_timestamp())}
    statement = update(tokens).where(tokens.c.id == token_id).values(**revoked)
    async with db.begin() as connection:
        if with_enrolled:
            enrolled = update(tokens).where(tokens.c.enrolled_by == token_id)
            await connection.execute(enrolled.values(**revoked))
        return (await connection.execute(statement)).rowcount == 1


async def good(db: Database, token_ids: Collection[str]) -> frozenset[str]:
    """Which of these tokens exist, and are neither revoked nor expired."""
    statement = select(tokens.c.id).where(tokens.c.id.in_(token_ids), _is_good())
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
        jobs=row.jobs,
        nodes=row.nodes,
        uses_left=row.uses_left,
        may_replace=row.may_replace,
        enrolled_by=row.enrolled_by,
    )
