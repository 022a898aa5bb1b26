"""Stored captures as merged stacks: a tree, or text. Reads rows and hands them to `stacks`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hangwatch_server import ranges, stacks
from hangwatch_server.db import captures as rows
from hangwatch_server.db.captures import StoredPart
from hangwatch_server.db.engine import Database
from hangwatch_server.model import Capture, PartRow, StackClass, Tree, TreeNode

# Beyond this many parts merging would hold up the event loop noticeably.
THREAD_FROM = 64
# A long incident is captured again and again; the last ones say what its page shows.
MERGED_CAPTURES = 20


async def tree(db: Database, capture: Capture, *, native: bool, framework: bool) -> Tree:
    """Merge a capture's stacks; frozen ones are told apart by the capture before it."""
    roots, classes = await _merged(db, capture, native=native, framework=framework)
    return Tree(capture=capture.id, roots=roots, classes=classes, missing=_missing(capture))


async def incident_tree(db: Database, incident: str, *, native: bool, framework: bool) -> Tree:
    """The newest stacks of every rank that any capture of the incident holds, as one tree."""
    captures = await rows.of_incident(db, incident)
    newest, before = await _newest_of_each_rank(db, captures)
    roots, classes = await _merge(newest, before, native=native, framework=framework)
    return Tree(
        capture=captures[-1].id if captures else "", roots=roots, classes=classes, missing=()
    )


async def incident_text(db: Database, incident: str) -> str:
    """The same as plain text."""
    newest, _ = await _newest_of_each_rank(db, await rows.of_incident(db, incident))
    return (await asyncio.to_thread(stacks.text, newest, native=False)).strip() + "\n"


async def _newest_of_each_rank(
    db: Database, captures: Sequence[Capture]
) -> tuple[list[stacks.RankStacks], list[stacks.RankStacks]]:
    """Each rank's newest stacks, and those before them where it was captured more than once."""
    newest: dict[int, stacks.RankStacks] = {}
    before: dict[int, stacks.RankStacks] = {}
    for capture in captures[-MERGED_CAPTURES:]:
        for part in _stacks(await rows.parts(db, capture.id)):
            if part.rank in newest:
                before[part.rank] = newest[part.rank]
            newest[part.rank] = part
    return list(newest.values()), list(before.values())


async def text(db: Database, capture: Capture) -> str:
    """The merged stacks as plain text, with the ranks that are missing and why."""
    parts = _stacks(await rows.parts(db, capture.id))
    merged = await asyncio.to_thread(stacks.text, parts, native=capture.native)
    absent = [
        f"rank {row.rank} on {row.node or 'no node'}: {row.reason} {row.remedy}".rstrip()
        for row in _missing(capture)
        if row.reason
    ]
    return "\n".join([merged, *absent]).strip() + "\n"


async def _merged(
    db: Database, capture: Capture, *, native: bool, framework: bool
) -> tuple[tuple[TreeNode, ...], tuple[StackClass, ...]]:
    parts = _stacks(await rows.parts(db, capture.id))
    earlier = await _previous(db, capture)
    previous = _stacks(await rows.parts(db, earlier.id)) if earlier is not None else []
    return await _merge(parts, previous, native=native, framework=framework)


async def _merge(
    parts: list[stacks.RankStacks],
    previous: list[stacks.RankStacks],
    *,
    native: bool,
    framework: bool,
) -> tuple[tuple[TreeNode, ...], tuple[StackClass, ...]]:
    if len(parts) < THREAD_FROM:
        return stacks.merge(parts, previous, native=native, show_framework=framework)
    return await asyncio.to_thread(
        stacks.merge, parts, previous, native=native, show_framework=framework
    )


async def _previous(db: Database, capture: Capture) -> Capture | None:
    """The newest capture of the same incident before this one that has a rank in common."""
    if capture.incident is None:
        return None
    own = set(ranges.parse(capture.ranks))
    before = [
        other
        for other in await rows.of_incident(db, capture.incident)
        if other.requested_at < capture.requested_at and own & set(ranges.parse(other.ranks))
    ]
    return before[-1] if before else None


def _stacks(parts: list[StoredPart]) -> list[stacks.RankStacks]:
    return [
        stacks.RankStacks(rank=stored.part.rank, stacks=stored.part.stacks)
        for stored in parts
        if stored.part.stacks
    ]


def _missing(capture: Capture) -> tuple[PartRow, ...]:
    return tuple(row for row in capture.parts if not row.has_stacks)
