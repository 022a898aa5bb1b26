"""The stacks of stored captures by their outlines: each rank's keys, and of each key one process.

Of 16,384 ranks the merged tree is wanted within a second; in a hang they stand at a few places.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from hangwatch_agent import wire
from hangwatch_server import outlines
from hangwatch_server.db import stacks
from hangwatch_server.db.captures import MAX_PARTS
from hangwatch_server.db.engine import Database
from hangwatch_server.db.stacks import Place, Stacks
from hangwatch_server.db.tables import capture_parts
from hangwatch_server.outlines import Key, Outline, Outlined

_Rows = Sequence[Any]  # rows of capture, rank, outline and perhaps more


async def of_capture(db: Database, capture_id: str) -> Outlined:
    """Of every part that holds stacks, by rank."""
    statement = (
        select(capture_parts.c.capture, capture_parts.c.rank, capture_parts.c.outline)
        .where(capture_parts.c.capture == capture_id, capture_parts.c.has_stacks)
        .order_by(capture_parts.c.rank)
        .limit(MAX_PARTS)
    )
    async with db.begin() as connection:
        rows = (await connection.execute(statement)).all()
        found, examples = await _found(connection, rows)
    return Outlined(list(found.values()), examples)


async def newest_of_incident(db: Database, incident_id: str) -> tuple[Outlined, Outlined]:
    """Each rank's newest stacks over all captures of an incident, and those before them.

    By rank; the second one is shorter where a rank was captured once.
    """
    async with db.begin() as connection:
        rows = (await connection.execute(stacks.newest_parts(incident_id, 2))).all()
        found, examples = await _found(connection, rows)
    now, before = (
        [found[capture, rank] for capture, rank, _, place in rows if place == wanted]
        for wanted in (1, 2)
    )
    return Outlined(now, examples), Outlined(before, examples)


async def _found(
    connection: AsyncConnection, rows: _Rows
) -> tuple[dict[Place, Outline], dict[Key, wire.ProcessStacks]]:
    """Each row's outline, in order, and the examples; a part without outline is read in full."""
    older = [(capture, rank) for capture, rank, packed, *_ in rows if packed is None]
    in_full = await stacks.of_places(connection, older)
    found, holders = await asyncio.to_thread(_outlines, rows, in_full)
    examples: dict[Key, wire.ProcessStacks] = {}
    _add(examples, found, in_full)
    # The first holder of each key; all others only where that one's part cannot be read.
    for few in (slice(1), slice(1, None)):
        lacking = (places[few] for key, places in holders.items() if key not in examples)
        chosen = list(dict.fromkeys(itertools.chain.from_iterable(lacking)))
        _add(examples, found, await stacks.of_places(connection, chosen))
    return found, examples


def _outlines(
    rows: _Rows, in_full: Mapping[Place, Stacks]
) -> tuple[dict[Place, Outline], dict[Key, list[Place]]]:
    """Of each row, and who holds a key; of a part that cannot be read the outline is empty."""
    found: dict[Place, Outline] = {}
    holders: dict[Key, list[Place]] = {}
    for capture, rank, packed, *_ in rows:
        place = (capture, rank)
        if packed is None:
            outline = outlines.of(rank, in_full.get(place, ()))
        else:
            outline = outlines.unpack(rank, packed)
        found[place] = outline
        for _, key in outline.processes:
            holders.setdefault(key, []).append(place)
    return found, holders


def _add(
    examples: dict[Key, wire.ProcessStacks],
    found: Mapping[Place, Outline],
    in_full: Mapping[Place, Stacks],
) -> None:
    for place, processes in in_full.items():
        of_pid = {process.pid: process for process in processes}
        for pid, key in found[place].processes:
            if key not in examples and pid in of_pid:
                examples[key] = of_pid[pid]
