"""Stored stacks by their outlines: nobody missing, few read in full, older rows like new ones."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest
from sqlalchemy import text, update
from tests.support import verdicts as make
from tests.web import stack_scenes

from hangwatch_agent import wire
from hangwatch_server import stacks
from hangwatch_server.db import captures, jobs, leases, outlined_stacks
from hangwatch_server.db import incidents as incident_rows
from hangwatch_server.db.engine import Database
from hangwatch_server.db.tables import capture_parts
from hangwatch_server.outlines import Outlined

pytestmark = [pytest.mark.integration, pytest.mark.anyio]


async def _store(db: Database, capture: str, parts: list[stacks.RankStacks]) -> None:
    for part in parts:
        held = wire.CapturePart(
            capture=capture, launch="run-1", rank=part.rank, pid=1, age_s=0.1, stacks=part.stacks
        )
        await captures.store_part(db, held, "node-b")


async def _execute(db: Database, statement: str) -> None:
    async with db.begin() as connection:
        await connection.execute(text(statement))


@pytest.fixture
async def stored(db: Database) -> str:
    """A capture of 64 ranks in which rank 5 loads and ranks 9 and 10 write a log."""
    await jobs.save(db, make.job(), "run-1", {})
    await captures.create(db, make.capture("c1"))
    await _store(db, "c1", stack_scenes.after())
    return "c1"


async def test_the_tree_is_the_one_of_all_stacks_and_few_of_them_are_read(
    db: Database, stored: str
) -> None:
    found = await outlined_stacks.of_capture(db, stored)

    assert stacks.merge_outlined(found, Outlined()) == stacks.merge(stack_scenes.after())
    assert [outline.rank for outline in found.outlines] == list(range(64))
    assert len(found.examples) == 4  # waiting, loading, its loaders, logging


async def test_moves_are_seen_between_the_parts_of_two_captures(db: Database, stored: str) -> None:
    await captures.create(db, make.capture("c0"))
    await _store(db, "c0", stack_scenes.before())

    now = await outlined_stacks.of_capture(db, stored)
    then = await outlined_stacks.of_capture(db, "c0")

    whole = stacks.merge(stack_scenes.after(), stack_scenes.before())
    assert stacks.merge_outlined(now, then) == whole


@pytest.mark.parametrize("older", [range(64), range(0, 64, 2), range(5, 64)])
async def test_parts_that_an_older_server_has_stored_are_read_in_full(
    db: Database, stored: str, older: range
) -> None:
    forget = update(capture_parts).where(capture_parts.c.rank.in_(older)).values(outline=None)
    async with db.begin() as connection:
        await connection.execute(forget)

    found = await outlined_stacks.of_capture(db, stored)

    assert stacks.merge_outlined(found, Outlined()) == stacks.merge(stack_scenes.after())


async def test_where_the_first_part_of_a_kind_cannot_be_read_another_one_is(
    db: Database, stored: str
) -> None:
    broken = """UPDATE capture_parts SET part = '{"stacks": [{"pid": "x"}]}' WHERE rank < 5"""
    await _execute(db, broken)

    found = await outlined_stacks.of_capture(db, stored)

    assert stacks.merge_outlined(found, Outlined()) == stacks.merge(stack_scenes.after())


async def test_a_stack_that_no_part_can_tell_is_left_out_alone(db: Database, stored: str) -> None:
    broken = """UPDATE capture_parts SET part = '{"stacks": 7}' WHERE rank IN (9, 10)"""
    await _execute(db, broken)

    found = await outlined_stacks.of_capture(db, stored)

    rest = [part for part in stack_scenes.after() if part.rank not in (9, 10)]
    assert stacks.merge_outlined(found, Outlined()) == stacks.merge(rest)


async def test_of_an_incident_each_ranks_newest_stacks_come_and_those_before(db: Database) -> None:
    await jobs.save(db, make.job(), "run-1", {})
    lease = await leases.claim(db, make.job().id, "server-1", 60)
    assert lease is not None
    incident = await incident_rows.open_incident(db, lease, make.verdict(make.job().id))
    shares = {"c1": range(64), "c2": range(9, 64), "c3": (9, 10)}
    for number, (name, ranks) in enumerate(shares.items()):
        at = make.SINCE + timedelta(seconds=number)
        capture = dataclasses.replace(make.capture(name, incident=incident.id), requested_at=at)
        await captures.create(db, capture)
        scene = stack_scenes.after() if name == "c3" else stack_scenes.before()
        await _store(db, name, [part for part in scene if part.rank in ranks])

    now, before = await outlined_stacks.newest_of_incident(db, incident.id)

    newest = [*stack_scenes.before()[:9], *stack_scenes.after()[9:11], *stack_scenes.before()[11:]]
    assert stacks.merge_outlined(now, before) == stacks.merge(newest, stack_scenes.before()[9:])


async def test_a_capture_without_stacks_has_no_outlines(db: Database) -> None:
    await jobs.save(db, make.job(), "run-1", {})
    await captures.create(db, make.capture("c1"))
    await captures.store_part(db, make.empty_part("c1"), "node-b")

    assert await outlined_stacks.of_capture(db, "c1") == Outlined([], {})
