"""The delivery log: what was said where, how each try went; and what people do about it."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import Row, Select, and_, exists, func, select, update

from hangwatch_server.db import codec, paging
from hangwatch_server.db.engine import Database
from hangwatch_server.db.tables import channels, deliveries, delivery_attempts, incidents
from hangwatch_server.errors import ConflictError, NotFoundError
from hangwatch_server.model.alerts import (
    Attempt,
    Delivery,
    DeliveryState,
    DeliverySummary,
    Message,
    Topic,
)

MAX_ATTEMPTS = 200
MAX_OF_INCIDENT = 500


async def list_page(
    db: Database,
    *,
    state: DeliveryState | None = None,
    channel: str | None = None,
    incident: str | None = None,
    limit: int = 50,
    before: str | None = None,
) -> tuple[list[DeliverySummary], str | None]:
    """Newest first; next cursor or None. `channel` is an id or a whole name."""
    size = paging.bounded(limit)
    statement = (
        _query().order_by(deliveries.c.created_at.desc(), deliveries.c.id.desc()).limit(size + 1)
    )
    if state is not None:
        statement = statement.where(deliveries.c.state == state.value)
    if channel is not None:
        statement = statement.where((channels.c.id == channel) | (channels.c.name == channel))
    if incident is not None:
        statement = statement.where(deliveries.c.incident == incident)
    if before is not None:
        statement = statement.where(
            paging.is_before(deliveries.c.created_at, deliveries.c.id, before)
        )
    async with db.begin() as connection:
        rows = (await connection.execute(statement)).all()
    page = [_summary(row) for row in rows[:size]]
    is_last = len(rows) <= size
    return page, None if is_last else paging.cursor(page[-1].created_at, page[-1].id)


async def of_incident(db: Database, incident_id: str) -> list[DeliverySummary]:
    """All of it, in the order in which it was planned."""
    statement = (
        _query()
        .where(deliveries.c.incident == incident_id)
        .order_by(deliveries.c.sequence)
        .limit(MAX_OF_INCIDENT)
    )
    async with db.begin() as connection:
        return [_summary(row) for row in (await connection.execute(statement)).all()]


async def newest_of_channels(db: Database) -> dict[str, DeliverySummary]:
    """The last message of each channel that has one, by the channel's id."""
    newest = (
        select(deliveries.c.id)
        .where(deliveries.c.channel == channels.c.id)
        .order_by(deliveries.c.sequence.desc())
        .limit(1)
        .correlate(channels)
        .scalar_subquery()
    )
    async with db.begin() as connection:
        rows = (await connection.execute(_query().where(deliveries.c.id == newest))).all()
    return {row.channel: _summary(row) for row in rows}


async def find(db: Database, delivery_id: str) -> Delivery | None:
    """One with its message and every try."""
    statement = _query().add_columns(deliveries.c.message).where(deliveries.c.id == delivery_id)
    async with db.begin() as connection:
        row = (await connection.execute(statement)).first()
        if row is None:
            return None
        tries = (
            select(delivery_attempts)
            .where(delivery_attempts.c.delivery == delivery_id)
            .order_by(delivery_attempts.c.id)
            .limit(MAX_ATTEMPTS)
        )
        attempts = tuple(
            Attempt(at=one.at, status=one.status, error=one.error, took_s=one.took_s)
            for one in (await connection.execute(tries)).all()
        )
    return Delivery(**_fields(row), attempts=attempts, message=_message(row))


async def redeliver(db: Database, delivery_id: str) -> Delivery:
    """Send it again, at once and with the same id; also what was sent, failed or held back.

    NotFoundError for an unknown id; ConflictError where its channel is disabled.
    """
    is_enabled = exists(
        select(channels.c.id).where(channels.c.id == deliveries.c.channel, channels.c.is_enabled)
    )
    statement = (
        update(deliveries)
        .where(deliveries.c.id == delivery_id, is_enabled)
        .values(
            state=DeliveryState.PENDING.value,
            reason="",
            tries=0,
            next_at=func.clock_timestamp(),
        )
    )
    async with db.begin() as connection:
        is_changed = (await connection.execute(statement)).rowcount == 1
    found = await find(db, delivery_id)
    if found is None:
        raise NotFoundError(
            f"delivery '{delivery_id}' is not known: it may be older than the retention; list "
            "them with GET /api/v1/deliveries"
        )
    if not is_changed:
        raise ConflictError(
            f"channel '{found.channel_name}' is disabled: enable it, then send the message again"
        )
    return found


async def give_up(db: Database, channel_id: str, reason: str) -> int:
    """Nothing that waits on this channel is sent any more; how many messages that were."""
    statement = (
        update(deliveries)
        .where(
            and_(
                deliveries.c.channel == channel_id,
                deliveries.c.state == DeliveryState.PENDING.value,
            )
        )
        .values(state=DeliveryState.FAILED.value, reason=reason, next_at=None)
    )
    async with db.begin() as connection:
        return (await connection.execute(statement)).rowcount


async def resume(db: Database, channel_id: str) -> None:
    """The channel is mended, perhaps: what waits is tried at once, and what was given up of hangs
    that still stand is planned again, as what a silence held back is."""
    own = deliveries.c.channel == channel_id
    is_standing = exists(
        select(incidents.c.id).where(
            incidents.c.id == deliveries.c.incident, incidents.c.ended_at.is_(None)
        )
    )
    waiting = (
        update(deliveries)
        .where(own, deliveries.c.state == DeliveryState.PENDING.value)
        .values(tries=0, next_at=func.clock_timestamp())
    )
    given_up = (
        update(deliveries)
        .where(
            own,
            deliveries.c.state == DeliveryState.FAILED.value,
            deliveries.c.topic == Topic.OPENED.value,
            is_standing,
        )
        .values(state=DeliveryState.SILENCED.value, reason="its channel did not work")
    )
    async with db.begin() as connection:
        await connection.execute(waiting)
        await connection.execute(given_up)


def _message(row: Row[Any]) -> Message:  # Any: a row of many column types
    """What was said; where this version cannot read what another one wrote, that and the title."""
    try:
        return codec.restore(row.message, Message)
    except msgspec.ValidationError:
        return Message(
            id=row.id,
            topic=Topic(row.topic),
            at=row.created_at,
            about=row.about,
            title=row.title or "",
            text="Written by another version of Hangwatch, which this one cannot read.",
            url="",
            incident=None,
        )


def _query() -> Select[Any]:  # Any: rows of many column types
    own = [column for column in deliveries.c if column.name != "message"]
    return select(
        *own,
        channels.c.name.label("channel_name"),
        deliveries.c.message["title"].astext.label("title"),
    ).join(channels, channels.c.id == deliveries.c.channel)


def _summary(row: Row[Any]) -> DeliverySummary:  # Any: a row of many column types
    return DeliverySummary(**_fields(row))


def _fields(row: Row[Any]) -> dict[str, Any]:  # Any: as the row
    return {
        "id": row.id,
        "channel": row.channel,
        "channel_name": row.channel_name,
        "topic": Topic(row.topic),
        "number": row.number,
        "about": row.about,
        "incident": row.incident,
        "title": row.title or "",
        "state": DeliveryState(row.state),
        "reason": row.reason,
        "tries": row.tries,
        "created_at": row.created_at,
        "next_at": row.next_at,
        "sent_at": row.sent_at,
    }
