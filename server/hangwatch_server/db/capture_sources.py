"""What the source lines of captured stacks say, read without the rest of the captures' parts."""

from __future__ import annotations

import contextlib
from collections.abc import Collection

import msgspec
from sqlalchemy import ColumnElement, Text, cast, func, select

from hangwatch_agent import wire
from hangwatch_server.db.engine import Database
from hangwatch_server.db.tables import capture_parts, captures

Sources = tuple[wire.Source, ...]


async def of_capture(db: Database, capture_id: str, ranks: Collection[int]) -> list[Sources]:
    """Those of each of these ranks that has some, by rank."""
    return await _newest(db, capture_parts.c.capture == capture_id, ranks)


async def of_incident(db: Database, incident_id: str, ranks: Collection[int]) -> list[Sources]:
    """The same, from each rank's newest stacks over all captures of the incident."""
    return await _newest(db, captures.c.incident == incident_id, ranks)


async def _newest(
    db: Database, belongs: ColumnElement[bool], ranks: Collection[int]
) -> list[Sources]:
    place = func.row_number().over(
        partition_by=capture_parts.c.rank,
        order_by=(captures.c.requested_at.desc(), captures.c.id.desc()),
    )
    sources = cast(capture_parts.c.part["sources"], Text)
    numbered = (
        select(capture_parts.c.rank, sources.label("sources"), place.label("place"))
        .join(captures, captures.c.id == capture_parts.c.capture)
        .where(belongs, capture_parts.c.has_stacks, capture_parts.c.rank.in_(ranks))
        .subquery()
    )
    statement = select(numbered.c.sources).where(numbered.c.place == 1).order_by(numbered.c.rank)
    async with db.begin() as connection:
        rows = (await connection.execute(statement)).all()
    decoder = msgspec.json.Decoder(Sources)
    found = []
    for row in rows:
        with contextlib.suppress(msgspec.MsgspecError, TypeError):  # a part of an older agent
            found.append(decoder.decode(row.sources))
    return found
