"""The outbox as rows: what planning of alerts reads and writes; sending is the work of `claims`."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import func, select, text, tuple_, update
from sqlalchemy.dialects.postgresql import JSONB, distinct_on
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from hangwatch_server.db.engine import Database
from hangwatch_server.db.tables import deliveries, incidents
from hangwatch_server.model import IncidentState
from hangwatch_server.model.alerts import DeliveryState, Message, Topic
from hangwatch_server.model.outbox import Case, Due, Subject, Told

CASES_AT_ONCE = 500
_ROWS_AT_ONCE = 100  # each carries a message of some kilobytes
# What planning looks at of a delivery; not the message, which has kilobytes.
TOLD = (
    deliveries.c.id,
    deliveries.c.about,
    deliveries.c.channel,
    deliveries.c.topic,
    deliveries.c.number,
    deliveries.c.state,
    deliveries.c.created_at,
    deliveries.c.sent_at,
)


async def cases(db: Database, after: Case | None = None) -> tuple[tuple[Case, ...], datetime]:
    """Confirmed incidents that people may have to be told of, oldest first, and the time now."""
    conditions = func.jsonb_path_query_array(
        incidents.c.verdict, text("'$.culprits[*].condition'"), type_=JSONB
    )
    statement = (
        select(incidents, conditions.label("conditions"))
        .with_only_columns(
            incidents.c.id,
            incidents.c.job,
            incidents.c.job_name,
            incidents.c.kind,
            incidents.c.culprit_nodes,
            incidents.c.state,
            incidents.c.confirmed_at,
            incidents.c.ended_at,
            incidents.c.end_reason,
            incidents.c.acknowledged_at,
            incidents.c.snoozed_until,
            conditions.label("conditions"),
            func.now().label("now"),
        )
        .where(incidents.c.confirmed_at.is_not(None), incidents.c.told_at.is_(None))
        .order_by(incidents.c.confirmed_at, incidents.c.id)
        .limit(CASES_AT_ONCE)
    )
    if after is not None:
        position = tuple_(incidents.c.confirmed_at, incidents.c.id)
        statement = statement.where(position > tuple_(after.confirmed_at, after.id))
    async with db.begin() as connection:
        rows = (await connection.execute(statement)).all()
    at = rows[0].now if rows else datetime.min.replace(tzinfo=UTC)
    return tuple(_case(row) for row in rows), at


async def now(db: Database) -> datetime:
    """By the database's clock, as all times of rows are."""
    async with db.begin() as connection:
        found: datetime = (await connection.execute(select(func.now()))).scalar_one()
    return found


async def told(db: Database, incident_ids: Collection[str]) -> list[Told]:
    """Deliveries of these incidents, of the reminders on a channel the last."""
    statement = _told().where(deliveries.c.incident.in_(incident_ids))
    async with db.begin() as connection:
        return [as_told(row) for row in (await connection.execute(statement)).all()]


async def told_about(db: Database, about: Collection[str]) -> list[Told]:
    """Deliveries about these, which are no incidents."""
    statement = _told().where(deliveries.c.about.in_(about))
    async with db.begin() as connection:
        return [as_told(row) for row in (await connection.execute(statement)).all()]


async def put(db: Database, planned: Sequence[tuple[Due, Message]]) -> int:
    """Write what was planned; how many rows are new.

    What another server has written in between stays as it is.
    """
    fresh = [_row(due, message) for due, message in planned if not due.wakes]
    count = 0
    async with db.begin() as connection:
        for start in range(0, len(fresh), _ROWS_AT_ONCE):
            statement = upsert(deliveries).on_conflict_do_nothing().returning(deliveries.c.id)
            rows = await connection.execute(statement.values(fresh[start : start + _ROWS_AT_ONCE]))
            count += len(rows.all())
        for due, message in planned:
            if due.wakes:
                count += await _wake(connection, due, message)
    return count


async def close(db: Database, incident_ids: Collection[str]) -> None:
    """These are over, and all that is to be told of them has been planned."""
    statement = (
        update(incidents)
        .where(incidents.c.id.in_(incident_ids), incidents.c.ended_at.is_not(None))
        .values(told_at=func.now())
    )
    async with db.begin() as connection:
        await connection.execute(statement)


async def close_over(db: Database, over_for_s: float) -> None:
    """Incidents that ended so long ago need no look any more, though nobody was told of them."""
    ended_by = func.now() - timedelta(seconds=over_for_s)
    statement = (
        update(incidents)
        .where(
            incidents.c.confirmed_at.is_not(None),
            incidents.c.told_at.is_(None),
            incidents.c.ended_at <= ended_by,
        )
        .values(told_at=func.now())
    )
    async with db.begin() as connection:
        await connection.execute(statement)


def _case(row: Any) -> Case:  # a row of many column types
    return Case(
        id=row.id,
        subject=Subject(
            job=row.job_name,
            job_id=row.job,
            nodes=tuple(row.culprit_nodes),
            kind=row.kind,
            conditions=tuple(row.conditions),
        ),
        state=IncidentState(row.state),
        confirmed_at=row.confirmed_at,
        ended_at=row.ended_at,
        end_reason=row.end_reason,
        acknowledged_at=row.acknowledged_at,
        snoozed_until=row.snoozed_until,
    )


def _told() -> Any:  # a select of many column types
    """What stands for days has hundreds of reminders, of which only the last one counts."""
    kind = (deliveries.c.about, deliveries.c.channel, deliveries.c.topic)
    return select(*TOLD).ext(distinct_on(*kind)).order_by(*kind, deliveries.c.number.desc())


def as_told(row: Any) -> Told:  # a row of many column types
    """Of a row with the columns TOLD."""
    return Told(
        id=row.id,
        channel=row.channel,
        about=row.about,
        topic=Topic(row.topic),
        number=row.number,
        state=DeliveryState(row.state),
        created_at=row.created_at,
        sent_at=row.sent_at,
    )


def _row(due: Due, message: Message) -> dict[str, Any]:
    state = DeliveryState.SILENCED if due.held else DeliveryState.PENDING
    return {
        "id": message.id,
        "channel": due.channel,
        "incident": message.incident.id if message.incident is not None else None,
        "about": message.about,
        "topic": due.topic.value,
        "number": due.number,
        "state": state.value,
        "reason": due.held,
        "message": message,
        "created_at": func.clock_timestamp(),
        "next_at": None if due.held else func.clock_timestamp(),
    }


async def _wake(connection: AsyncConnection, due: Due, message: Message) -> int:
    """What was held back goes out now, and speaks of now."""
    statement = (
        update(deliveries)
        .where(deliveries.c.id == due.wakes, deliveries.c.state == DeliveryState.SILENCED.value)
        .values(
            state=DeliveryState.PENDING.value,
            reason="",
            tries=0,
            message=dataclasses.replace(message, id=due.wakes),
            next_at=func.clock_timestamp(),
        )
    )
    return (await connection.execute(statement)).rowcount
