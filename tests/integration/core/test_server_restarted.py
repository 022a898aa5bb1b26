"""What is shown of a job by a server that has just started and has not read yet what is stored."""

from __future__ import annotations

import asyncio

import pytest
from tests.integration.core import house, synthetic
from tests.integration.core.house import House
from tests.integration.core.waiting import until

from hangwatch_server.board.base import job_id
from hangwatch_server.db import timelines
from hangwatch_server.model import State, TimelinePoint, Verdict
from hangwatch_server.watch.ledger import Ledger
from hangwatch_server.watch.watched import Watched

pytestmark = [pytest.mark.integration, pytest.mark.anyio]
JOB = job_id(synthetic.KEY)
SPEED = 10.0


async def hang(server: House) -> Verdict:
    """The verdict once it has an incident; the job stands from the start."""
    job = synthetic.Job(server.clock.monotonic_s, odd_op="broadcast")
    job.stall()
    token = await server.token("node-a")
    async with synthetic.agent(server.url, token, "node-a", job, range(4)):
        return await until(
            lambda: server.services.watch.verdict(JOB), lambda found: found.incident is not None
        )


async def test_job_of_an_incident_is_never_shown_as_a_new_one(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house.open_house(database_url, SPEED) as server:
        before = await hang(server)
    reading, go_on, read = asyncio.Event(), asyncio.Event(), Ledger._load

    async def slowly(self: Ledger, watched: Watched, now_s: float) -> None:
        reading.set()
        await go_on.wait()
        await read(self, watched, now_s)

    monkeypatch.setattr(Ledger, "_load", slowly)
    async with house.open_house(database_url, SPEED) as server:
        beating = asyncio.create_task(hang(server))
        async with asyncio.timeout(60):
            await reading.wait()
        early = await server.services.watch.job(JOB)
        go_on.set()
        after = await beating

    assert early.state is State.UNKNOWN
    assert early.verdict.incident == before.incident
    assert after.incident == before.incident


async def test_the_line_of_progress_outlives_the_server_and_the_job(database_url: str) -> None:
    async with house.open_house(database_url, SPEED) as server:
        before = await line_of_a_hang(server)

    async with house.open_house(database_url, SPEED) as server:
        gone = await server.services.watch.timeline(JOB)  # by no agent any more
        job = await server.services.watch.job(JOB)

    assert not job.is_live
    assert [(one.state, one.calls_per_s) for one in gone[: len(before)]] == [
        (one.state, one.calls_per_s) for one in before
    ]
    assert gone[0].ago_s >= before[0].ago_s


async def line_of_a_hang(server: House) -> tuple[TimelinePoint, ...]:
    """What is stored once it tells of the hang."""
    job = synthetic.Job(server.clock.monotonic_s, odd_op="broadcast")
    job.stall()
    token = await server.token("node-a")
    async with synthetic.agent(server.url, token, "node-a", job, range(4)):
        return await until(
            lambda: timelines.find(server.services.db, JOB),
            lambda found: any(one.state is State.HUNG for one in found),
        )
