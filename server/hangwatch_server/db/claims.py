"""How a message of the outbox is claimed, and what came of it is written.

A message is a row before it is sent. Whoever sends it holds a claim on it, for a time by the
database's clock, and writes what came of it only while that claim stands; a claim that ran out is
free for all. So each message goes out at least once, under one id, whatever stops.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, and_, exists, func, insert, or_, select, text, update

from hangwatch_server.db import codec
from hangwatch_server.db.engine import Database
from hangwatch_server.db.tables import channels, deliveries, delivery_attempts
from hangwatch_server.model.alerts import DeliveryState, Message, Topic

# Written out, not bound: an index on part of a table is used only where its condition is seen.
_IS_PENDING = text("deliveries.state = 'pending'")


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """A message that this process alone may send, until its claim runs out."""

    id: str
    claim: str
    channel: str
    topic: Topic
    tries: int
    thread: str  # what the receiver calls the first message about the same
    is_orphan: bool  # the message that began it was given up
    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What one try brought; when it was, the database's clock says."""

    status: int | None  # of HTTP, where an answer came
    error: str  # "" when it was accepted
    took_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    pending: int
    oldest_age_s: float


async def claim(
    db: Database, claim: str, *, for_s: float, most_per_channel: int, without: Collection[str]
) -> list[Claimed]:
    """Take messages that are due, some of each enabled channel but those in `without`.

    None whose claim stands, none that another process claims at this moment, and none before which
    an earlier message about the same is pending on its channel.
    """
    due = _due_in_each_channel(most_per_channel, without)
    async with db.begin() as connection:
        rows = (await connection.execute(due)).all()
        if rows:
            await connection.execute(
                update(deliveries)
                .where(deliveries.c.id.in_([row.id for row in rows]))
                .values(claim=claim, claimed_until=_after(for_s))
            )
    found = [_claimed(row, claim) for row in rows]
    for one in found:
        if isinstance(one, str):
            await _spoil(db, claim, one)
    return [one for one in found if isinstance(one, Claimed)]


async def prolong(db: Database, one: Claimed, for_s: float) -> bool:
    """The claim stands for so long from now. False when it had run out, and is another's."""
    statement = (
        update(deliveries)
        .where(deliveries.c.id == one.id, deliveries.c.claim == one.claim, _IS_PENDING)
        .values(claimed_until=_after(for_s))
    )
    async with db.begin() as connection:
        return (await connection.execute(statement)).rowcount == 1


async def settle_sent(db: Database, one: Claimed, tried: Tried, thread: str) -> bool:
    """The receiver has it. False when the claim had run out: another process sends it again."""
    changes = {"state": DeliveryState.SENT.value, "reason": "", "thread": thread, "next_at": None}
    return await _settle(db, one, tried, changes | {"sent_at": func.clock_timestamp()})


async def settle_put_off(db: Database, one: Claimed, tried: Tried, delay_s: float) -> bool:
    """It did not arrive, and is tried again after the delay. False as above."""
    return await _settle(db, one, tried, {"reason": tried.error, "next_at": _after(delay_s)})


async def settle_failed(db: Database, one: Claimed, tried: Tried | None, reason: str) -> bool:
    """It is given up, with or without a last try. False as above."""
    changes = {"state": DeliveryState.FAILED.value, "reason": reason, "next_at": None}
    return await _settle(db, one, tried, changes)


async def release(db: Database, holder: str) -> None:
    """Give up its claims at once, so that the next server need not wait until they run out."""
    statement = (
        update(deliveries)
        .where(_IS_PENDING, deliveries.c.claim.startswith(f"{holder}:", autoescape=True))
        .values(claim="", claimed_until=None)
    )
    async with db.begin() as connection:
        await connection.execute(statement)


async def backlog(db: Database) -> Backlog:
    """How many messages wait to be sent, and for how long the oldest has."""
    age = func.extract("epoch", func.now() - func.min(deliveries.c.created_at))
    statement = select(func.count(), func.coalesce(age, 0.0)).where(_IS_PENDING)
    async with db.begin() as connection:
        count, oldest = (await connection.execute(statement.select_from(deliveries))).one()
    return Backlog(pending=count, oldest_age_s=float(oldest))


def _due_in_each_channel(most: int, without: Collection[str]) -> Any:  # many column types
    earlier, first = deliveries.alias("earlier"), deliveries.alias("first")
    same = [earlier.c.channel == deliveries.c.channel, earlier.c.about == deliveries.c.about]
    # A subquery of its own, not EXISTS, of which Postgres would make a join that compares each
    # message with all others of its channel.
    overtaken = (
        select(earlier.c.id)
        .where(*same, text("earlier.state = 'pending'"), earlier.c.sequence < deliveries.c.sequence)
        .limit(1)
        .scalar_subquery()
    )
    is_orphan = exists(
        select(earlier.c.id).where(
            *same,
            earlier.c.topic == Topic.OPENED.value,
            earlier.c.state == DeliveryState.FAILED.value,
            earlier.c.id != deliveries.c.id,
        )
    )
    thread = (
        select(first.c.thread)
        .where(
            first.c.channel == deliveries.c.channel,
            first.c.about == deliveries.c.about,
            first.c.thread != "",
        )
        .order_by(first.c.sequence)
        .limit(1)
        .scalar_subquery()
    )
    due = (
        select(
            deliveries.c.id,
            deliveries.c.channel,
            deliveries.c.topic,
            deliveries.c.tries,
            deliveries.c.message,
            thread.label("first_thread"),
            is_orphan.label("is_orphan"),
        )
        .where(deliveries.c.channel == channels.c.id, _IS_PENDING, _is_free(), overtaken.is_(None))
        .order_by(deliveries.c.next_at, deliveries.c.sequence)
        .limit(most)
        .with_for_update(skip_locked=True, of=deliveries)
        .lateral("due")
    )
    statement = select(due).select_from(channels.join(due, text("true")))
    return statement.where(channels.c.is_enabled, channels.c.id.not_in(without))


def _is_free() -> ColumnElement[bool]:
    at = func.now()  # not clock_timestamp(), which no index can be searched by
    is_unclaimed = or_(deliveries.c.claimed_until.is_(None), deliveries.c.claimed_until <= at)
    return and_(deliveries.c.next_at <= at, is_unclaimed)


async def _settle(db: Database, one: Claimed, tried: Tried | None, changes: dict[str, Any]) -> bool:
    """Write what came of it, if the claim still stands: the row count decides."""
    ours = and_(deliveries.c.id == one.id, deliveries.c.claim == one.claim, _IS_PENDING)
    tries = one.tries + (tried is not None)
    statement = (
        update(deliveries).where(ours).values(claim="", claimed_until=None, tries=tries, **changes)
    )
    async with db.begin() as connection:
        if (await connection.execute(statement)).rowcount != 1:
            return False
        if tried is not None:
            await connection.execute(
                insert(delivery_attempts).values(
                    delivery=one.id,
                    at=func.clock_timestamp() - timedelta(seconds=tried.took_s),
                    status=tried.status,
                    error=tried.error,
                    took_s=tried.took_s,
                )
            )
    return True


def _claimed(row: Any, claim: str) -> Claimed | str:  # a row of many column types
    """Or the id alone, where this version cannot read the message that another one wrote."""
    try:
        message = codec.restore(row.message, Message)
    except msgspec.ValidationError:
        return str(row.id)
    return Claimed(
        id=row.id,
        claim=claim,
        channel=row.channel,
        topic=Topic(row.topic),
        tries=row.tries,
        thread=row.first_thread or "",
        is_orphan=row.is_orphan,
        message=message,
    )


async def _spoil(db: Database, claim: str, delivery_id: str) -> None:
    """Given up at once: it would stop all that are claimed with it, again and again."""
    statement = (
        update(deliveries)
        .where(deliveries.c.id == delivery_id, deliveries.c.claim == claim, _IS_PENDING)
        .values(
            state=DeliveryState.FAILED.value,
            reason="written by another version of Hangwatch, which this one cannot read",
            next_at=None,
            claim="",
            claimed_until=None,
        )
    )
    async with db.begin() as connection:
        await connection.execute(statement)


def _after(seconds: float) -> ColumnElement[datetime]:
    return func.clock_timestamp() + timedelta(seconds=seconds)
