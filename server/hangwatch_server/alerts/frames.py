"""The first frames of the culprit's stack, as a message shows them: what it does, in its own words.

The main thread of the first culprit alone, innermost frame first.
"""

from __future__ import annotations

from hangwatch_server import outlines, texts
from hangwatch_server.db import stacks as stack_rows
from hangwatch_server.db.engine import Database
from hangwatch_server.model import Incident
from hangwatch_server.stacks import frames

MAX_FRAMES = 6
MAX_CHARS = 160


async def of_culprit(db: Database, incident: Incident) -> tuple[str, ...]:
    """`train.py:88 in __getitem__`, innermost first; empty where no stack of it is stored."""
    culprits = incident.verdict.culprits
    if not culprits:
        return ()
    found = await stack_rows.newest_of_rank(db, incident.id, culprits[0].rank)
    process = frames.main_process(found)
    main = outlines.main_thread(process) if process is not None else None
    if main is None:
        return ()
    shown = frames.python_only(main.frames)[:MAX_FRAMES]
    lines = (texts.plain(frames.where(frame)).replace("\n", " ") for frame in shown)
    return tuple(texts.short(line, MAX_CHARS) for line in lines)
