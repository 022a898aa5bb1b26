"""Looks that agents take by themselves: whose they may be, and what becomes of them."""

from __future__ import annotations

import pytest
from tests.integration.core import house, synthetic
from tests.integration.core.waiting import until

from hangwatch_agent import wire
from hangwatch_server.board.base import job_id

pytestmark = [pytest.mark.integration, pytest.mark.anyio]
JOB = job_id(synthetic.KEY)


def look(rank: int) -> wire.CapturePart:
    return synthetic.part_of(f"s1-{rank}", rank)


async def test_look_at_an_own_rank_places_it_and_one_at_anothers_is_dropped(
    database_url: str,
) -> None:
    async with house.open_house(database_url) as server:
        job = synthetic.Job(server.clock.monotonic_s)
        a, b = await server.token("node-a"), await server.token("node-b")
        async with (
            synthetic.agent(server.url, a, "node-a", job, range(2)) as mine,
            synthetic.agent(server.url, b, "node-b", job, range(2, 4)),
        ):
            watch = server.services.watch
            await until(lambda: watch.job(JOB), lambda found: found.reporting == 4)
            await mine.line.send(wire.encode(wire.Samples(parts=(look(2), look(0)))))
            rows = await until(lambda: watch.ranks(JOB), lambda found: bool(found[0].where))

            assert rows[2].where == ""
            assert mine.stored == []  # nothing was made durable, so nothing is acknowledged
            assert mine.refused == []


async def test_welcome_says_that_looks_are_taken(database_url: str) -> None:
    async with house.open_house(database_url) as server:
        token = await server.token("node-a")
        async with synthetic.dialled(server.url, token) as line:
            await line.send(wire.encode(synthetic.hello("node-a")))
            welcome = await synthetic.answer(line)

    assert isinstance(welcome, wire.Welcome)
    assert welcome.takes_samples
