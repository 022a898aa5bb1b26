"""Channels as rows. Their secrets leave this module only by `secrets`, for the sender."""

from __future__ import annotations

import secrets as random_ids
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Row, func, insert, select, update
from sqlalchemy import delete as delete_rows
from sqlalchemy.exc import IntegrityError

from hangwatch_server.db.codec import restore
from hangwatch_server.db.engine import Database
from hangwatch_server.db.tables import channels
from hangwatch_server.errors import ConflictError, NotFoundError
from hangwatch_server.model.alerts import Channel, ChannelKind, Matcher, Topic

MAX_CHANNELS = 200
StoredSecrets = Mapping[str, Mapping[str, str]]  # name → {"value": …} or {"file": …}


async def create(db: Database, channel: Channel, stored: StoredSecrets) -> Channel:
    """Keep a new channel; its id and time are given here. ConflictError for a name in use."""
    columns = _columns(channel) | {
        "id": random_ids.token_hex(6),
        "created_at": func.clock_timestamp(),
        "created_by": channel.created_by,
        "secrets": stored,
    }
    return await _written(db, insert(channels).values(**columns).returning(channels), channel.name)


async def find(db: Database, channel_id: str) -> Channel | None:
    async with db.begin() as connection:
        row = (
            await connection.execute(select(channels).where(channels.c.id == channel_id))
        ).first()
    return None if row is None else _channel(row)


async def list_all(db: Database) -> list[Channel]:
    """All channels by name; there are never more than MAX_CHANNELS."""
    statement = select(channels).order_by(channels.c.name, channels.c.id).limit(MAX_CHANNELS)
    async with db.begin() as connection:
        return [_channel(row) for row in (await connection.execute(statement)).all()]


async def enabled(db: Database) -> list[Channel]:
    """Those that messages go to, oldest first."""
    statement = (
        select(channels)
        .where(channels.c.is_enabled)
        .order_by(channels.c.created_at, channels.c.id)
        .limit(MAX_CHANNELS)
    )
    async with db.begin() as connection:
        return [_channel(row) for row in (await connection.execute(statement)).all()]


async def count(db: Database) -> int:
    async with db.begin() as connection:
        return (await connection.execute(select(func.count()).select_from(channels))).scalar_one()


async def change(db: Database, channel: Channel, stored: StoredSecrets) -> Channel:
    """Write all but id, kind, time and maker. NotFoundError or ConflictError as they come."""
    statement = (
        update(channels)
        .where(channels.c.id == channel.id)
        .values(**_columns(channel), secrets=stored)
        .returning(channels)
    )
    return await _written(db, statement, channel.name)


async def delete(db: Database, channel_id: str) -> bool:
    """With its deliveries; False when there is no such channel."""
    statement = delete_rows(channels).where(channels.c.id == channel_id)
    async with db.begin() as connection:
        return (await connection.execute(statement)).rowcount == 1


async def disable(db: Database, channel_id: str, reason: str) -> bool:
    """False when it is unknown or disabled already: then somebody else has told why."""
    statement = (
        update(channels)
        .where(channels.c.id == channel_id, channels.c.is_enabled)
        .values(is_enabled=False, disabled_reason=reason)
    )
    async with db.begin() as connection:
        return (await connection.execute(statement)).rowcount == 1


async def secrets(db: Database, channel_id: str) -> StoredSecrets:
    """The secrets as stored; none for a channel that is gone."""
    statement = select(channels.c.secrets).where(channels.c.id == channel_id)
    async with db.begin() as connection:
        found: StoredSecrets | None = (await connection.execute(statement)).scalar_one_or_none()
    return found or {}


async def _written(db: Database, statement: Any, name: str) -> Channel:  # Any: insert or update
    try:
        async with db.begin() as connection:
            row = (await connection.execute(statement)).first()
    except IntegrityError as error:
        raise ConflictError(
            f"there is a channel '{name}' already: choose another name, or change that one"
        ) from error
    if row is None:
        raise NotFoundError("this channel is not known any more: somebody has deleted it")
    return _channel(row)


def _columns(channel: Channel) -> dict[str, Any]:
    return {
        "name": channel.name,
        "kind": channel.kind.value,
        "target": channel.target,
        "options": dict(channel.options),
        "topics": [topic.value for topic in channel.topics],
        "matchers": list(channel.matchers),
        "after_s": channel.after_s,
        "remind_s": channel.remind_s,
        "is_enabled": channel.is_enabled,
        "disabled_reason": channel.disabled_reason,
    }


def _channel(row: Row[Any]) -> Channel:  # Any: a row of many column types
    return Channel(
        id=row.id,
        name=row.name,
        kind=ChannelKind(row.kind),
        target=row.target,
        options=row.options,
        secret_names=tuple(sorted(row.secrets)),
        topics=tuple(Topic(text) for text in row.topics),
        matchers=tuple(restore(item, Matcher) for item in row.matchers),
        after_s=row.after_s,
        remind_s=row.remind_s,
        is_enabled=row.is_enabled,
        disabled_reason=row.disabled_reason,
        created_at=row.created_at,
        created_by=row.created_by,
    )
