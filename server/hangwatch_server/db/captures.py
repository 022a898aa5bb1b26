"""Captures and their parts as rows. A part is durable once `store_part` has returned.

A capture's parts come rank by rank, perhaps twice (the agent repeats what was not acknowledged) and
perhaps after the deadline, when a row that says "did not answer" stands in their place.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec
from sqlalchemy import Row, and_, func, not_, or_, select, update
from sqlalchemy import insert as insert_into
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import IntegrityError

from hangwatch_agent import wire
from hangwatch_server import outlines
from hangwatch_server.db import codec, paging
from hangwatch_server.db.engine import Database
from hangwatch_server.db.tables import capture_parts, captures
from hangwatch_server.errors import NotFoundError
from hangwatch_server.model import (
    Capture,
    CaptureState,
    CaptureSummary,
    PartRow,
    RankCapture,
)

MAX_PARTS = 100_000

_PART_ROW = [column for column in capture_parts.c if column.name not in ("part", "outline")]
_STORED_PART = [column for column in capture_parts.c if column.name != "outline"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPart:
    node: str
    part: wire.CapturePart
    stored_at: datetime


async def create(db: Database, capture: Capture) -> None:
    """Store a capture that is about to be taken; NotFoundError if its job is not stored."""
    statement = insert_into(captures).values(
        id=capture.id,
        job=capture.job,
        attempt=capture.attempt,
        incident=capture.incident,
        state=capture.state.value,
        requested_at=capture.requested_at,
        requested_by=capture.requested_by,
        ranks=capture.ranks,
        kinds=list(capture.kinds),
        native=capture.native,
    )
    try:
        async with db.begin() as connection:
            await connection.execute(statement)
    except IntegrityError as error:
        raise NotFoundError(
            f"capture {capture.id} cannot be stored: its job {capture.job} or incident is not "
            "stored, or the id is taken"
        ) from error


async def store_part(db: Database, part: wire.CapturePart, node: str) -> bool:
    """Store one rank's part; False when it was there already.

    A part that holds evidence replaces one that only says why there is none, never the reverse.
    Raises NotFoundError when the capture is not, or no longer, stored.
    """
    has_stacks = any(process.threads for process in part.stacks)
    has_entries = bool(part.entries)
    new = insert(capture_parts).values(
        capture=part.capture,
        rank=part.rank,
        node=node,
        pid=part.pid,
        has_stacks=has_stacks,
        has_entries=has_entries,
        reason=part.reason,
        remedy=part.remedy,
        stored_at=func.clock_timestamp(),
        part=part,
        outline=outlines.pack(outlines.of(part.rank, part.stacks)),
    )
    stored_is_empty = not_(or_(capture_parts.c.has_stacks, capture_parts.c.has_entries))
    new_has_something = or_(new.excluded.has_stacks, new.excluded.has_entries)
    statement = new.on_conflict_do_update(
        index_elements=[capture_parts.c.capture, capture_parts.c.rank],
        set_={
            column.name: new.excluded[column.name]
            for column in capture_parts.c
            if not column.primary_key
        },
        where=and_(stored_is_empty, new_has_something),
    ).returning(capture_parts.c.rank)
    try:
        async with db.begin() as connection:
            return (await connection.execute(statement)).first() is not None
    except IntegrityError as error:
        raise NotFoundError(f"there is no capture '{part.capture}': it was deleted") from error


async def finish(db: Database, capture_id: str, state: CaptureState) -> None:
    statement = update(captures).where(captures.c.id == capture_id).values(state=state.value)
    async with db.begin() as connection:
        await connection.execute(statement)


async def end_abandoned(db: Database, after_s: float, without: Collection[str]) -> None:
    """End what is still being taken so long after it was asked for, but for these captures."""
    statement = (
        update(captures)
        .where(
            captures.c.state == CaptureState.TAKING.value,
            captures.c.requested_at < func.now() - timedelta(seconds=after_s),
            captures.c.id.not_in(without),
        )
        .values(state=CaptureState.PARTIAL.value)
    )
    async with db.begin() as connection:
        await connection.execute(statement)


async def is_taking(db: Database, capture_id: str) -> bool:
    """False for a capture that is finished, and for one that is not stored."""
    statement = select(captures.c.state).where(captures.c.id == capture_id)
    async with db.begin() as connection:
        state = (await connection.execute(statement)).scalar_one_or_none()
    return state == CaptureState.TAKING.value


async def find(db: Database, capture_id: str) -> Capture | None:
    """One capture, with a row for each part that came."""
    parts = (
        select(*_PART_ROW)
        .where(capture_parts.c.capture == capture_id)
        .order_by(capture_parts.c.rank)
        .limit(MAX_PARTS)
    )
    async with db.begin() as connection:
        statement = select(captures).where(captures.c.id == capture_id)
        row = (await connection.execute(statement)).first()
        if row is None:
            return None
        rows = (await connection.execute(parts)).all()
    return _capture(row, tuple(_part_row(part) for part in rows))


async def parts(db: Database, capture_id: str) -> list[StoredPart]:
    """All parts of a capture, by rank."""
    statement = (
        select(*_STORED_PART)
        .where(capture_parts.c.capture == capture_id)
        .order_by(capture_parts.c.rank)
        .limit(MAX_PARTS)
    )
    async with db.begin() as connection:
        rows = (await connection.execute(statement)).all()
    return [_stored_part(row) for row in rows]


async def summaries(db: Database, incident_id: str, limit: int = 200) -> list[CaptureSummary]:
    """What each of an incident's newest captures has brought, oldest first."""
    is_empty = not_(or_(capture_parts.c.has_stacks, capture_parts.c.has_entries))
    statement = (
        select(
            captures,
            func.max(capture_parts.c.stored_at).label("stored_at"),
            func.count().filter(capture_parts.c.has_stacks).label("stacks"),
            func.count().filter(capture_parts.c.has_entries).label("entries"),
            func.count(capture_parts.c.rank).filter(is_empty).label("missing"),
        )
        .outerjoin(capture_parts, capture_parts.c.capture == captures.c.id)
        .where(captures.c.incident == incident_id)
        .group_by(captures.c.id)
        .order_by(captures.c.requested_at.desc(), captures.c.id.desc())
        .limit(paging.bounded(limit))
    )
    async with db.begin() as connection:
        rows = reversed((await connection.execute(statement)).all())
    return [
        CaptureSummary(
            id=row.id,
            state=CaptureState(row.state),
            requested_at=row.requested_at,
            stored_at=row.stored_at,
            requested_by=row.requested_by,
            ranks=row.ranks,
            kinds=tuple(row.kinds),
            stacks=row.stacks,
            entries=row.entries,
            missing=row.missing,
        )
        for row in rows
    ]


async def parts_page(
    db: Database, capture_id: str, *, after: int = -1, limit: int = 200
) -> list[StoredPart]:
    """The next parts of a capture by rank, beginning behind rank `after`."""
    statement = (
        select(*_STORED_PART)
        .where(capture_parts.c.capture == capture_id, capture_parts.c.rank > after)
        .order_by(capture_parts.c.rank)
        .limit(paging.bounded(limit))
    )
    async with db.begin() as connection:
        rows = (await connection.execute(statement)).all()
    return [_stored_part(row) for row in rows]


async def of_incident(db: Database, incident_id: str, limit: int = 200) -> list[Capture]:
    """An incident's newest captures, oldest first, without their part rows."""
    statement = (
        select(captures)
        .where(captures.c.incident == incident_id)
        .order_by(captures.c.requested_at.desc(), captures.c.id.desc())
        .limit(paging.bounded(limit))
    )
    async with db.begin() as connection:
        rows = (await connection.execute(statement)).all()
    return [_capture(row, ()) for row in reversed(rows)]


async def list_page(
    db: Database, job: str, *, limit: int = 50, before: str | None = None
) -> tuple[list[Capture], str | None]:
    """A job's captures, newest first, without their part rows; next cursor or None."""
    size = paging.bounded(limit)
    statement = (
        select(captures)
        .where(captures.c.job == job)
        .order_by(captures.c.requested_at.desc(), captures.c.id.desc())
        .limit(size + 1)
    )
    if before is not None:
        statement = statement.where(
            paging.is_before(captures.c.requested_at, captures.c.id, before)
        )
    async with db.begin() as connection:
        rows = (await connection.execute(statement)).all()
    page = [_capture(row, ()) for row in rows[:size]]
    is_last = len(rows) <= size
    return page, None if is_last else paging.cursor(page[-1].requested_at, page[-1].id)


async def earlier(db: Database, capture: Capture, limit: int = 20) -> list[Capture]:
    """Finished or running captures of the same attempt asked for before this one, newest first."""
    is_before = or_(
        captures.c.requested_at < capture.requested_at,
        and_(captures.c.requested_at == capture.requested_at, captures.c.id < capture.id),
    )
    statement = (
        select(captures)
        .where(captures.c.job == capture.job, captures.c.attempt == capture.attempt, is_before)
        .order_by(captures.c.requested_at.desc(), captures.c.id.desc())
        .limit(paging.bounded(limit))
    )
    async with db.begin() as connection:
        return [_capture(row, ()) for row in (await connection.execute(statement)).all()]


async def of_rank(db: Database, job: str, rank: int, limit: int = 20) -> list[RankCapture]:
    """This rank's share of the captures that it was asked for, newest first."""
    statement = (
        select(
            captures.c.id.label("capture"),
            captures.c.attempt,
            captures.c.incident,
            captures.c.requested_at,
            captures.c.requested_by,
            capture_parts.c.has_stacks,
            capture_parts.c.has_entries,
            capture_parts.c.reason,
            capture_parts.c.remedy,
        )
        .join(capture_parts, captures.c.id == capture_parts.c.capture)
        .where(captures.c.job == job, capture_parts.c.rank == rank)
        .order_by(captures.c.requested_at.desc(), captures.c.id.desc())
        .limit(paging.bounded(limit))
    )
    async with db.begin() as connection:
        found = (await connection.execute(statement)).all()
    return [RankCapture(**row._mapping) for row in found]


async def latest(
    db: Database, job: str, rank: int, attempt: int | None = None
) -> StoredPart | None:
    """The newest part of this rank that holds stacks."""
    statement = (
        select(*_STORED_PART)
        .join(captures, captures.c.id == capture_parts.c.capture)
        .where(captures.c.job == job, capture_parts.c.rank == rank, capture_parts.c.has_stacks)
        .order_by(captures.c.requested_at.desc(), captures.c.id.desc())
        .limit(1)
    )
    if attempt is not None:
        statement = statement.where(captures.c.attempt == attempt)
    async with db.begin() as connection:
        row = (await connection.execute(statement)).first()
    return None if row is None else _stored_part(row)


def _capture(row: Row[Any], rows: tuple[PartRow, ...]) -> Capture:  # Any: many column types
    return Capture(
        id=row.id,
        job=row.job,
        attempt=row.attempt,
        incident=row.incident,
        state=CaptureState(row.state),
        requested_at=row.requested_at,
        requested_by=row.requested_by,
        ranks=row.ranks,
        kinds=tuple(row.kinds),
        native=row.native,
        parts=rows,
    )


def _part_row(row: Row[Any]) -> PartRow:
    return PartRow(
        rank=row.rank,
        node=row.node,
        pid=row.pid,
        has_stacks=row.has_stacks,
        has_entries=row.has_entries,
        reason=row.reason,
        remedy=row.remedy,
    )


def _stored_part(row: Row[Any]) -> StoredPart:
    try:
        part = codec.restore(row.part, wire.CapturePart)
    except msgspec.ValidationError as error:
        # One odd part (a not-a-number from a strange agent) must not hide the other ranks' stacks.
        part = wire.CapturePart(
            capture=row.capture,
            launch="",
            rank=row.rank,
            pid=row.pid or 0,
            age_s=0.0,
            reason=f"the stored part cannot be read: {error}",
        )
    return StoredPart(node=row.node, part=part, stored_at=row.stored_at)
