"""Captures and parts as rows: nothing twice, evidence never replaced by its absence."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import text
from tests.support import verdicts as make

from hangwatch_agent import wire
from hangwatch_server.db import capture_sources, captures, incidents, jobs, leases, stacks
from hangwatch_server.db.engine import Database
from hangwatch_server.errors import NotFoundError
from hangwatch_server.model import CaptureState

pytestmark = [pytest.mark.integration, pytest.mark.anyio]

JOB = make.job().id


@pytest.fixture
async def stored(db: Database) -> str:
    await jobs.save(db, make.job(), "run-1", {})
    await captures.create(db, make.capture("c1"))
    return "c1"


async def test_capture_comes_back_with_a_row_per_part(db: Database, stored: str) -> None:
    await captures.store_part(db, make.empty_part(stored, rank=6), "node-b")
    await captures.store_part(db, make.part(stored, rank=5), "node-b")
    await captures.finish(db, stored, CaptureState.PARTIAL)

    found = await captures.find(db, stored)

    assert found is not None
    assert found.state is CaptureState.PARTIAL
    assert [(row.rank, row.has_stacks, row.reason) for row in found.parts] == [
        (5, True, ""),
        (6, False, "its agent did not answer within 15 s"),
    ]


async def test_part_comes_back_as_it_was_sent(db: Database, stored: str) -> None:
    part = make.part(stored)

    await captures.store_part(db, part, "node-b")

    assert [(held.node, held.part) for held in await captures.parts(db, stored)] == [
        ("node-b", part)
    ]


async def test_stacks_alone_are_read_and_a_part_that_cannot_be_hides_no_other(
    db: Database, stored: str
) -> None:
    for rank in (5, 7, 9):
        await captures.store_part(db, make.part(stored, rank=rank), "node-b")
    await captures.store_part(db, make.empty_part(stored, rank=6), "node-b")
    async with db.begin() as connection:
        broken = """update capture_parts set part = '{"stacks": [{"pid": "x"}]}' where rank = 7"""
        await connection.execute(text(broken))

    found = await stacks.of_capture(db, stored)

    assert found == [(rank, make.part(stored, rank=rank).stacks) for rank in (5, 9)]


async def test_source_lines_are_read_of_the_ranks_asked_for_and_older_parts_have_none(
    db: Database, stored: str
) -> None:
    for rank in (5, 7, 9):
        await captures.store_part(db, make.part(stored, rank=rank), "node-b")
    async with db.begin() as connection:
        older = "update capture_parts set part = part - 'sources' where rank = 7"
        await connection.execute(text(older))

    found = await capture_sources.of_capture(db, stored, [5, 7])

    assert [[source.line for source in one] for one in found] == [[88]]


async def test_repeated_part_is_stored_once(db: Database, stored: str) -> None:
    assert await captures.store_part(db, make.part(stored), "node-b")
    assert not await captures.store_part(db, make.part(stored, function="other"), "node-b")

    (held,) = await captures.parts(db, stored)
    assert held.part == make.part(stored)


async def test_late_evidence_replaces_the_reason_for_its_absence(db: Database, stored: str) -> None:
    assert await captures.store_part(db, make.empty_part(stored), "node-b")
    assert await captures.store_part(db, make.part(stored), "node-b")
    assert not await captures.store_part(db, make.empty_part(stored), "node-b")

    (held,) = await captures.parts(db, stored)
    assert held.part.stacks


@pytest.mark.parametrize("function", ["a\0b", "\\u0000", "\\\0", "\0\0", "<lambda> ü 🙂"])
async def test_odd_text_in_a_stack_is_stored(db: Database, stored: str, function: str) -> None:
    await captures.store_part(db, make.part(stored, function=function), "node-b")

    (held,) = await captures.parts(db, stored)
    frame = held.part.stacks[0].threads[0].frames[0]
    assert frame.name == function.replace("\0", "\ufffd")


async def test_part_that_cannot_be_read_says_so_and_hides_no_other(
    db: Database, stored: str
) -> None:
    await captures.store_part(db, make.part(stored, rank=5), "node-b")
    await captures.store_part(db, make.part(stored, rank=6), "node-b")
    async with db.begin() as connection:
        await connection.execute(
            text(
                "UPDATE capture_parts SET part = jsonb_set(part, '{age_s}', 'null') WHERE rank = 5"
            )
        )

    first, second = await captures.parts(db, stored)

    assert "cannot be read" in first.part.reason
    assert second.part == make.part(stored, rank=6)


async def test_part_of_a_deleted_capture_is_refused(db: Database) -> None:
    with pytest.raises(NotFoundError, match="no capture 'gone'"):
        await captures.store_part(db, make.part("gone"), "node-b")


async def test_capture_of_a_job_that_is_not_stored_is_refused(db: Database) -> None:
    with pytest.raises(NotFoundError):
        await captures.create(db, make.capture("c9", of="gone"))


async def test_latest_part_of_a_rank_holds_stacks(db: Database, stored: str) -> None:
    await captures.store_part(db, make.part(stored), "node-b")
    await captures.create(db, make.capture("c2"))
    await captures.store_part(db, make.empty_part("c2"), "node-b")

    latest = await captures.latest(db, JOB, 5)

    assert latest is not None
    assert latest.part.capture == "c1"
    assert await captures.latest(db, JOB, 4) is None
    assert await captures.latest(db, JOB, 5, attempt=2) is None


async def test_pages_of_captures(db: Database, stored: str) -> None:
    await captures.create(db, make.capture("c2"))

    first, cursor = await captures.list_page(db, JOB, limit=1)
    second, end = await captures.list_page(db, JOB, limit=1, before=cursor)

    assert [capture.id for capture in first + second] == ["c2", "c1"]
    assert end is None


async def test_part_with_recorder_entries_alone_counts_as_evidence(
    db: Database, stored: str
) -> None:
    entries = (wire.GroupEntries(gid="g", entries=()),)
    part = wire.CapturePart(
        capture=stored, launch="run-1", rank=5, pid=1, age_s=0.0, entries=entries
    )

    await captures.store_part(db, part, "node-b")

    found = await captures.find(db, stored)
    assert found is not None
    assert [(row.has_stacks, row.has_entries) for row in found.parts] == [(False, True)]


async def test_of_many_captures_the_newest_are_kept_oldest_first(db: Database) -> None:
    await jobs.save(db, make.job(), "run-1", {})
    lease = await leases.claim(db, make.job().id, "server-a", 60)
    assert lease is not None
    incident = await incidents.open_incident(db, lease, make.verdict())
    for minute, name in enumerate(("c1", "c2", "c3")):
        at = make.SINCE + timedelta(minutes=minute)
        taken = make.capture(name, incident=incident.id)
        await captures.create(db, replace(taken, requested_at=at))

    listed = await captures.of_incident(db, incident.id, limit=2)
    told = await captures.summaries(db, incident.id, limit=2)

    assert [one.id for one in listed] == [one.id for one in told] == ["c2", "c3"]


async def test_a_rank_finds_its_share_of_each_capture(db: Database) -> None:
    await jobs.save(db, make.job(), "run-1", {})
    for name, minute in (("old", 1), ("new", 2)):
        at = make.SINCE + timedelta(minutes=minute)
        await captures.create(db, replace(make.capture(name), requested_at=at))
    await captures.store_part(db, make.part("old"), "node-b")
    await captures.store_part(db, make.empty_part("new"), "node-b")
    await captures.store_part(db, make.part("new", rank=6), "node-b")

    found = await captures.of_rank(db, make.job().id, 5)

    assert [(row.capture, row.has_stacks) for row in found] == [("new", False), ("old", True)]
    assert "did not answer" in found[0].reason
