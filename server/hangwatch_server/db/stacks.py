"""The stacks of stored captures in full, without what else their parts hold.

Read from JSON text in one step. What merges the stacks of many ranks reads `outlined_stacks`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import Integer, Row, Select, Text, and_, cast, func, select
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncConnection

from hangwatch_agent import wire
from hangwatch_server.db.captures import MAX_PARTS
from hangwatch_server.db.engine import Database
from hangwatch_server.db.tables import capture_parts, captures

_THREAD_FROM = 256  # parts; decoding fewer is quicker than a thread
_STACKS = cast(capture_parts.c.part["stacks"], Text).label("stacks")

Stacks = tuple[wire.ProcessStacks, ...]
RankedStacks = tuple[int, Stacks]  # a rank and its processes
Place = tuple[str, int]  # a capture and a rank of it


async def of_capture(db: Database, capture_id: str) -> list[RankedStacks]:
    """Of every part that holds some, by rank; ones that cannot be read are left out."""
    statement = (
        select(capture_parts.c.capture, capture_parts.c.rank, _STACKS)
        .where(capture_parts.c.capture == capture_id, capture_parts.c.has_stacks)
        .order_by(capture_parts.c.rank)
        .limit(MAX_PARTS)
    )
    async with db.begin() as connection:
        rows = (await connection.execute(statement)).all()
    return [(rank, found) for (_, rank), found in (await _read(rows)).items()]


async def newest_of_incident(db: Database, incident_id: str) -> list[RankedStacks]:
    """Each rank's newest stacks over all captures of an incident, by rank."""
    async with db.begin() as connection:
        keys = (await connection.execute(newest_parts(incident_id, 1))).all()
        found = await of_places(connection, [(row.capture, row.rank) for row in keys])
    return [(rank, stacks) for (_, rank), stacks in found.items()]


async def newest_of_rank(db: Database, incident_id: str, rank: int) -> Stacks:
    """One rank's newest stacks over all captures of an incident; none where none came."""
    statement = (
        select(capture_parts.c.capture, capture_parts.c.rank, _STACKS)
        .join(captures, captures.c.id == capture_parts.c.capture)
        .where(
            captures.c.incident == incident_id,
            capture_parts.c.rank == rank,
            capture_parts.c.has_stacks,
        )
        .order_by(captures.c.requested_at.desc(), captures.c.id.desc())
        .limit(1)
    )
    async with db.begin() as connection:
        rows = (await connection.execute(statement)).all()
    return next(iter((await _read(rows)).values()), ())


async def of_places(connection: AsyncConnection, places: Sequence[Place]) -> dict[Place, Stacks]:
    """Of these parts, in this order; ones that cannot be read are left out."""
    if not places:
        return {}
    names, ranks = zip(*places, strict=True)
    wanted = (
        func.unnest(cast(list(names), ARRAY(Text)), cast(list(ranks), ARRAY(Integer)))
        .table_valued("capture", "rank")
        .render_derived(name="wanted")
    )
    is_same = and_(
        capture_parts.c.capture == wanted.c.capture, capture_parts.c.rank == wanted.c.rank
    )
    statement = select(capture_parts.c.capture, capture_parts.c.rank, _STACKS).join(wanted, is_same)
    found = await _read((await connection.execute(statement)).all())
    return {place: found[place] for place in places if place in found}


def newest_parts(incident_id: str, most: int) -> Select[Any]:  # Any: many columns
    """Of each rank the `most` newest parts with stacks: capture, rank, outline and place.

    By place, 1 for the newest, and rank. The parts themselves stay out of it: window, order and
    limit would carry them about, and they can be megabytes.
    """
    place = func.row_number().over(
        partition_by=capture_parts.c.rank,
        order_by=(captures.c.requested_at.desc(), captures.c.id.desc()),
    )
    numbered = (
        select(
            capture_parts.c.capture,
            capture_parts.c.rank,
            capture_parts.c.outline,
            place.label("place"),
        )
        .join(captures, captures.c.id == capture_parts.c.capture)
        .where(captures.c.incident == incident_id, capture_parts.c.has_stacks)
        .subquery()
    )
    return (
        select(numbered.c.capture, numbered.c.rank, numbered.c.outline, numbered.c.place)
        .where(numbered.c.place <= most)
        .order_by(numbered.c.place, numbered.c.rank)
        .limit(most * MAX_PARTS)
    )


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


async def _read(rows: Sequence[Row[Any]]) -> dict[Place, Stacks]:
    if len(rows) < _THREAD_FROM:
        return _decoded(rows)
    return await asyncio.to_thread(_decoded, rows)


def _decoded(rows: Sequence[Row[Any]]) -> dict[Place, Stacks]:
    decoder = msgspec.json.Decoder(Stacks)
    found: dict[Place, Stacks] = {}
    for row in rows:
        with contextlib.suppress(msgspec.MsgspecError):  # one odd part must not hide the others
            found[row.capture, row.rank] = decoder.decode(row.stacks)
    return found
