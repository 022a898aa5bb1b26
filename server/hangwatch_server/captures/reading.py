"""Stored captures as merged stacks: a tree, or text. Reads rows and hands them to `stacks`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import msgspec

from hangwatch_agent import wire
from hangwatch_server import stacks
from hangwatch_server.captures import pairing
from hangwatch_server.db import capture_sources
from hangwatch_server.db import captures as rows
from hangwatch_server.db import outlined_stacks as outlined_rows
from hangwatch_server.db import stacks as stack_rows
from hangwatch_server.db.captures import StoredPart
from hangwatch_server.db.engine import Database
from hangwatch_server.db.stacks import RankedStacks
from hangwatch_server.model import Capture, Comparison, PartRow, StackClass, Tree, TreeNode
from hangwatch_server.outlines import Outlined

# Beyond this many parts merging would hold up the event loop noticeably.
THREAD_FROM = 64
MAX_EXAMPLES = 64  # classes of stacks whose source lines are read
MAX_SOURCES = 1000  # of one tree


async def tree(
    db: Database,
    capture: Capture,
    *,
    native: bool,
    framework: bool,
    before: Capture | None = None,
) -> Tree:
    """Merge a capture's stacks; frozen ones are told apart by `before`, else the one before it."""
    earlier = before or pairing.before(capture, await rows.earlier(db, capture))
    now = await outlined_rows.of_capture(db, capture.id)
    then = await outlined_rows.of_capture(db, earlier.id) if earlier is not None else Outlined()
    roots, classes = await _merge(now, then, native=native, framework=framework)
    return Tree(
        capture=capture.id,
        roots=roots,
        classes=classes,
        missing=_missing(capture),
        before=earlier.id if earlier is not None else "",
        sources=_distinct(await capture_sources.of_capture(db, capture.id, _examples(classes))),
    )


async def comparison(db: Database, before: Capture, after: Capture) -> Comparison:
    """Which ranks moved between two captures, and from where to where."""
    then = await outlined_rows.of_capture(db, before.id)
    now = await outlined_rows.of_capture(db, after.id)
    return await asyncio.to_thread(stacks.compare, before, then, after, now)


async def speedscope(db: Database, capture: Capture, *, native: bool) -> bytes:
    """The capture as a file of speedscope."""
    parts = await _stacks(db, capture.id)
    return await asyncio.to_thread(
        lambda: msgspec.json.encode(stacks.speedscope(parts, capture.id, native=native))
    )


async def chrome_trace(db: Database, capture: Capture, *, native: bool) -> bytes:
    """The capture as a trace that Perfetto and Chrome open."""
    parts = await _stacks(db, capture.id)
    return await asyncio.to_thread(
        lambda: msgspec.json.encode(stacks.chrome_trace(parts, capture.id, native=native))
    )


async def incident_tree(
    db: Database, incident: str, last: str, *, native: bool, framework: bool
) -> Tree:
    """The newest stacks of every rank that any capture of the incident holds, as one tree.

    `last` is the id of its newest capture, "" for none.
    """
    now, before = await outlined_rows.newest_of_incident(db, incident)
    roots, classes = await _merge(now, before, native=native, framework=framework)
    sources = _distinct(await capture_sources.of_incident(db, incident, _examples(classes)))
    return Tree(capture=last, roots=roots, classes=classes, missing=(), sources=sources)


async def rank_tree(db: Database, job: str, rank: int, *, native: bool) -> Tree:
    """The newest stored stacks of one rank, as a tree of it alone."""
    stored = await rows.latest(db, job, rank)
    parts = _of_parts([stored] if stored is not None else [])
    roots, classes = stacks.merge(parts, native=native)
    capture = stored.part.capture if stored is not None else ""
    sources = stored.part.sources if stored is not None else ()
    return Tree(capture=capture, roots=roots, classes=classes, missing=(), sources=sources)


async def incident_text(db: Database, incident: str) -> str:
    """The same as plain text."""
    newest = await stack_rows.newest_of_incident(db, incident)
    return (await asyncio.to_thread(stacks.text, _ranked(newest), native=False)).strip() + "\n"


async def text(db: Database, capture: Capture, *, native: bool) -> str:
    """The merged stacks as plain text, with the ranks that are missing and why."""
    parts = _of_parts(await rows.parts(db, capture.id))
    merged = await asyncio.to_thread(stacks.text, parts, native=native)
    absent = [
        f"rank {row.rank} on {row.node or 'no node'}: {row.reason} {row.remedy}".rstrip()
        for row in _missing(capture)
        if row.reason
    ]
    return "\n".join([merged, *absent]).strip() + "\n"


async def _merge(
    now: Outlined, before: Outlined, *, native: bool, framework: bool
) -> tuple[tuple[TreeNode, ...], tuple[StackClass, ...]]:
    if len(now.outlines) < THREAD_FROM:
        return stacks.merge_outlined(now, before, native=native, show_framework=framework)
    return await asyncio.to_thread(
        stacks.merge_outlined, now, before, native=native, show_framework=framework
    )


async def _stacks(db: Database, capture_id: str) -> list[stacks.RankStacks]:
    """Of the ranks that gave some."""
    return _ranked(await stack_rows.of_capture(db, capture_id))


def _ranked(found: list[RankedStacks]) -> list[stacks.RankStacks]:
    return [stacks.RankStacks(rank=rank, stacks=processes) for rank, processes in found]


def _of_parts(parts: list[StoredPart]) -> list[stacks.RankStacks]:
    """Also of ranks that gave only the reason why there are none."""
    return [
        stacks.RankStacks(rank=stored.part.rank, stacks=stored.part.stacks)
        for stored in parts
        if stored.part.stacks
    ]


def _examples(classes: tuple[StackClass, ...]) -> list[int]:
    """A rank of each class of equal stacks, odd classes first: what they stand at is the same."""
    return [int(group.ranks.split(",")[0].split("-")[0]) for group in classes[:MAX_EXAMPLES]]


def _distinct(found: Iterable[tuple[wire.Source, ...]]) -> tuple[wire.Source, ...]:
    """One text for each line, within a bound; nodes whose files differ are not told apart."""
    places = {(source.file, source.line): source for one in found for source in one}
    return tuple(places.values())[:MAX_SOURCES]


def _missing(capture: Capture) -> tuple[PartRow, ...]:
    return tuple(row for row in capture.parts if not row.has_stacks)
