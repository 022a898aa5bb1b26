"""The database goes away during a hang: detection goes on, and is written when it is back."""

from __future__ import annotations

import asyncio

import pytest
from tests.integration.core import house, synthetic
from tests.integration.core.waiting import until
from tests.support import postgres as support

from hangwatch_server.board.base import job_id
from hangwatch_server.db import incidents as incident_rows
from hangwatch_server.db.embedded import EmbeddedPostgres
from hangwatch_server.model import IncidentState, State

pytestmark = [pytest.mark.integration, pytest.mark.anyio]
JOB = job_id(synthetic.KEY)


async def test_hang_found_while_the_database_is_away_becomes_an_incident_once_it_is_back() -> None:
    with support.data_folder() as folder:
        postgres = EmbeddedPostgres(folder, settings=support.FAST)
        url = await asyncio.to_thread(postgres.start)
        try:
            async with house.open_house(url, speed=5.0) as server:
                watch = server.services.watch
                job = synthetic.Job(server.clock.monotonic_s, odd_op="broadcast")
                token = await server.token("node-a")
                async with synthetic.agent(server.url, token, "node-a", job, range(4)) as one:
                    await until(lambda: watch.verdict(JOB), lambda found: found.index > 0)
                    await asyncio.to_thread(postgres.stop)
                    job.stall()
                    away = await until(
                        lambda: watch.verdict(JOB), lambda found: found.state is State.HUNG
                    )
                    again = await asyncio.to_thread(postgres.start)
                    back = await until(
                        lambda: watch.verdict(JOB), lambda found: found.incident is not None
                    )
                    incident = await incident_rows.find(server.services.db, back.incident or "")
        finally:
            await asyncio.to_thread(postgres.stop)

    assert again == url
    assert away.incident is None
    assert back.index > away.index
    assert incident is not None
    assert incident.state is IncidentState.CONFIRMED
    assert not one.refused
