"""The stacks of stored captures, without what else their parts hold.

Read from JSON text in one step: of 16,384 ranks the merged tree is wanted within a second.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import Row, Text, and_, cast, func, select

from hangwatch_agent import wire
from hangwatch_server.db.captures import MAX_PARTS
from hangwatch_server.db.engine import Database
from hangwatch_server.db.tables import capture_parts, captures

_THREAD_FROM = 256  # parts; decoding fewer is quicker than a thread
_STACKS = cast(capture_parts.c.part["stacks"], Text).label("stacks")

RankedStacks = tuple[int, tuple[wire.ProcessStacks, ...]]  # a rank and its processes


async def of_capture(db: Database, capture_id: str) -> list[RankedStacks]:
    """Of every part that holds some, by rank; ones that cannot be read are left out."""
    statement = (
        select(capture_parts.c.rank, _STACKS)
        .where(capture_parts.c.capture == capture_id, capture_parts.c.has_stacks)
        .order_by(capture_parts.c.rank)
        .limit(MAX_PARTS)
    )
    async with db.begin() as connection:
        rows = (await connection.execute(statement)).all()
    return await _read(rows)


async def newest_of_incident(
    db: Database, incident_id: str
) -> tuple[list[RankedStacks], list[RankedStacks]]:
    """Each rank's newest stacks over all captures of an incident, and those before them.

    By rank; the second list is shorter where a rank was captured once.
    """
    place = func.row_number().over(
        partition_by=capture_parts.c.rank,
        order_by=(captures.c.requested_at.desc(), captures.c.id.desc()),
    )
    # Window, order and limit run over keys alone: the parts themselves can be megabytes.
    numbered = (
        select(capture_parts.c.capture, capture_parts.c.rank, place.label("place"))
        .join(captures, captures.c.id == capture_parts.c.capture)
        .where(captures.c.incident == incident_id, capture_parts.c.has_stacks)
        .subquery()
    )
    keys = (
        select(numbered)
        .where(numbered.c.place <= 2)
        .order_by(numbered.c.place, numbered.c.rank)
        .limit(2 * MAX_PARTS)
        .subquery()
    )
    is_same = and_(capture_parts.c.capture == keys.c.capture, capture_parts.c.rank == keys.c.rank)
    statement = select(keys.c.place, keys.c.rank, _STACKS).join(capture_parts, is_same)
    async with db.begin() as connection:
        rows = (await connection.execute(statement)).all()
    ordered = sorted(rows, key=lambda row: row.rank)
    newest = await _read([row for row in ordered if row.place == 1])
    return newest, await _read([row for row in ordered if row.place == 2])


async def stamp_of_incident(db: Database, incident_id: str) -> tuple[int, datetime | None]:
    """Another one as soon as a part of any capture of the incident is stored or replaced."""
    statement = (
        select(func.count(), func.max(capture_parts.c.stored_at))
        .join(captures, captures.c.id == capture_parts.c.capture)
        .where(captures.c.incident == incident_id)
    )
    async with db.begin() as connection:
        count, newest = (await connection.execute(statement)).one()
    return count, newest


async def _read(rows: Sequence[Row[Any]]) -> list[RankedStacks]:
    if len(rows) < _THREAD_FROM:
        return _decoded(rows)
    return await asyncio.to_thread(_decoded, rows)


def _decoded(rows: Sequence[Row[Any]]) -> list[RankedStacks]:
    decoder = msgspec.json.Decoder(tuple[wire.ProcessStacks, ...])
    found = []
    for row in rows:
        with contextlib.suppress(msgspec.MsgspecError):  # one odd part must not hide the others
            found.append((row.rank, decoder.decode(row.stacks)))
    return found
