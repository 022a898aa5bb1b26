"""The incident page of a hang of 16,384 stacks: python bench/stack_page.py [ranks] [distinct].

The capture lies in a real Postgres and the page comes from a real server; Chromium opens it until a
key walks the merged tree: first while the server has never made this tree, then again, and at last
as a first opening of parts that an older server has stored, without the outlines of their stacks.
The stacks are made up; by default a few ranks differ, and with as many distinct stacks as ranks
none is like another and the page comes in parts. Beside it what the steps cost, in CPU time of
this process.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import msgspec
from playwright.sync_api import Page, sync_playwright
from sqlalchemy import func, insert, update

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.support import postgres
from tests.support import verdicts as made
from tests.support.browser import launch
from tests.web import stack_scenes

from hangwatch_agent import client, wire
from hangwatch_server import outlines, stacks
from hangwatch_server.db import captures, codec, incidents, jobs, leases, migrate
from hangwatch_server.db.engine import Database
from hangwatch_server.db.tables import capture_parts
from hangwatch_server.demo.main import open_stage
from hangwatch_server.model import CaptureState

T = TypeVar("T")
TRIES = 3
BATCH = 1024


def main() -> None:
    ranks = int(sys.argv[1]) if len(sys.argv) > 1 else 16_384
    distinct = int(sys.argv[2]) if len(sys.argv) > 2 else 13
    parts = [_part(rank, ranks, distinct) for rank in range(ranks)]
    _say("stacks", f"{ranks:,}, about {distinct:,} distinct; bar 1 s from the click to the tree")
    with _database() as url:
        incident = asyncio.run(_store(url, parts))
        with open_stage(client.Client) as stage, sync_playwright() as playwright:
            stage.settings = {"HANGWATCH_DATABASE_URL": url}
            stage.start_server()
            page = launch(playwright).new_page(viewport={"width": 1440, "height": 900})
            page.goto(stage.url)  # styles and scripts, which every reader has from other pages
            address = f"{stage.url}/incidents/{incident}"
            for turn in ("first", "again"):
                _say(f"incident page, {turn}", _opened(page, address))
            with ThreadPoolExecutor(1) as beside:  # this thread runs the browser's event loop
                beside.submit(asyncio.run, _age(url)).result()
            _say("incident page, older parts", _opened(page, address))
    _steps(parts)


def _opened(page: Page, url: str) -> str:
    started_s = time.perf_counter()
    page.goto(url, wait_until="domcontentloaded")
    first = page.locator("#stacks .segment > summary, .stacks .segment > summary").first
    first.focus()
    page.keyboard.press("ArrowDown")
    took_s = time.perf_counter() - started_s
    timing = page.evaluate("performance.getEntriesByType('navigation')[0].toJSON()")
    return (
        f"{took_s:.2f} s until a key walks the tree, {timing['responseStart'] / 1000:.2f} s of "
        f"them the server; {timing['encodedBodySize'] / 1000:.0f} kB"
    )


def _part(rank: int, ranks: int, distinct: int) -> wire.CapturePart:
    is_odd = rank % 997 == 5 or distinct > ranks // 2
    line = 1000 + rank % distinct if is_odd else 147
    places = (*stack_scenes.WAITING[:-3], ("train", stack_scenes.TRAIN, line))
    part = stack_scenes.part(rank, ("main", (*places, *stack_scenes.WAITING[-2:])))
    return wire.CapturePart(
        capture="c", launch="run-1", rank=rank, pid=812, age_s=0.1, stacks=part.stacks
    )


@contextlib.contextmanager
def _database() -> Iterator[str]:
    with postgres.server() as server:
        postgres.create_database(server, postgres.TEMPLATE)
        url = postgres.url_of(server, postgres.TEMPLATE)
        asyncio.run(migrate.upgrade(url))
        yield url


async def _store(url: str, parts: list[wire.CapturePart]) -> str:
    """A hang of this job with one capture of all ranks; returns the incident's id."""
    db = Database(url)
    await db.open()
    try:
        await jobs.save(db, made.job(), "run-1", {})
        lease = await leases.claim(db, made.job().id, "bench", 60)
        assert lease is not None
        verdict = made.verdict(culprits=(5,), waiting=f"0-4,6-{len(parts) - 1}")
        incident = await incidents.open_incident(db, lease, verdict)
        await incidents.confirm(db, lease, incident.id, verdict)
        capture = dataclasses.replace(
            made.capture("c", incident=incident.id), ranks=f"0-{len(parts) - 1}"
        )
        await captures.create(db, capture)
        for start in range(0, len(parts), BATCH):
            async with db.begin() as connection:
                rows = [_row(part) for part in parts[start : start + BATCH]]
                await connection.execute(insert(capture_parts), rows)
        await captures.finish(db, "c", CaptureState.COMPLETE)
    finally:
        await db.close()
    return incident.id


async def _age(url: str) -> None:
    """Have the parts as an older server has stored them, and the server read them anew."""
    db = Database(url)
    await db.open()
    try:
        async with db.begin() as connection:
            await connection.execute(
                update(capture_parts).values(outline=None, stored_at=func.clock_timestamp())
            )
    finally:
        await db.close()


def _row(part: wire.CapturePart) -> dict[str, object]:
    return {
        "capture": part.capture,
        "rank": part.rank,
        "node": f"node-{part.rank // 8}",
        "pid": part.pid,
        "has_stacks": True,
        "has_entries": False,
        "reason": "",
        "remedy": "",
        "stored_at": made.SINCE,
        "part": part,
        "outline": outlines.pack(outlines.of(part.rank, part.stacks)),
    }


def _steps(parts: list[wire.CapturePart]) -> None:
    packed = [outlines.pack(outlines.of(part.rank, part.stacks)) for part in parts]
    unpack = outlines.unpack
    outlined = _timed(
        "reading stored outlines", lambda: list(map(unpack, range(len(packed)), packed))
    )
    examples = {
        key: process
        for outline, part in zip(outlined, parts, strict=True)
        for (_, key), process in zip(outline.processes, part.stacks, strict=True)
    }
    now = outlines.Outlined(outlined, examples)
    _timed("merging them", lambda: stacks.merge_outlined(now, outlines.Outlined()))
    rows = [codec.dumps(part.stacks) for part in parts]  # as the driver hands them over
    decode = msgspec.json.Decoder(tuple[wire.ProcessStacks, ...]).decode
    read = _timed("reading all stored stacks", lambda: [decode(row) for row in rows])
    ranked = [stacks.RankStacks(rank, found) for rank, found in enumerate(read)]
    _timed("merging those", lambda: stacks.merge(ranked))


def _timed(name: str, work: Callable[[], T]) -> T:
    times = []
    for _ in range(TRIES):
        started_s = time.process_time()
        result = work()
        times.append(time.process_time() - started_s)
    _say(name, f"{statistics.median(times):.3f} s of a core")
    return result


def _say(what: str, text: str) -> None:
    print(f"{what:<28} {text}", flush=True)


if __name__ == "__main__":
    main()
