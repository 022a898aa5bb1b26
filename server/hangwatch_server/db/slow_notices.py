"""Notices of stragglers that stand at a receiver, and the jobs that they are about."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from datetime import timedelta

from sqlalchemy import exists, func, select

from hangwatch_server.db import outbox
from hangwatch_server.db.engine import Database
from hangwatch_server.db.tables import deliveries
from hangwatch_server.model.alerts import DeliveryState, Topic
from hangwatch_server.model.outbox import Told

MAX_NOTICES = 200
# Receivers close by themselves what is older.
STANDS_FOR = timedelta(days=7)
_ARRIVES = (DeliveryState.PENDING.value, DeliveryState.SENT.value)


async def standing(db: Database, without: Collection[str]) -> list[Told]:
    """Those whose end was not told, the oldest first, but none about what is in `without`."""
    over = deliveries.alias("over")
    is_over = exists(
        select(over.c.id).where(
            over.c.about == deliveries.c.about,
            over.c.channel == deliveries.c.channel,
            over.c.topic == Topic.RESOLVED.value,
        )
    )
    statement = (
        select(*outbox.TOLD, deliveries.c.message["title"].astext.label("title"))
        .where(
            deliveries.c.incident.is_(None),  # the index's, as is the time
            deliveries.c.created_at > func.now() - STANDS_FOR,
            deliveries.c.topic == Topic.SLOW.value,
            deliveries.c.number == 0,  # others renew it
            deliveries.c.state.in_(_ARRIVES),
            deliveries.c.about.not_in(without),
            ~is_over,
        )
        .order_by(deliveries.c.created_at)
        .limit(MAX_NOTICES)
    )
    async with db.begin() as connection:
        rows = (await connection.execute(statement)).all()
    return [dataclasses.replace(outbox.as_told(row), title=row.title or "") for row in rows]
