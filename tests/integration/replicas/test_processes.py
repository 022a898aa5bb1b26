"""Two real server processes: the owner of a job's detection is paused past its lease, or killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from sqlalchemy import select
from tests.integration.replicas import processes
from tests.integration.replicas.processes import at, at_all, is_whole
from tests.support.redis import RedisServer
from tests.support.running_server import RunningServer

from hangwatch_server.db.engine import Database
from hangwatch_server.db.tables import verdicts

pytestmark = [pytest.mark.integration, pytest.mark.anyio]
# What these tests would wait for most.
SOON = {"HANGWATCH_LEASE_TTL_S": "2", "HANGWATCH_HARD_APART_S": "0.5"}


@pytest.fixture
def servers(database_url: str, redis_server: RedisServer) -> Iterator[list[RunningServer]]:
    settings = {"HANGWATCH_REDIS_URL": redis_server.url, **SOON}
    with processes.two_servers(database_url, settings) as found:
        yield found


async def test_owner_that_sleeps_past_its_lease_writes_nothing_old_and_the_verdict_outlives_a_kill(
    servers: list[RunningServer], db: Database
) -> None:
    async with processes.job_across(servers) as (job, agents):
        (node, sleeper), (other_node, other) = await processes.by_owner(db, servers)

        os.kill(sleeper.process.pid, signal.SIGSTOP)
        try:
            await processes.owned_by(db, other)
            await agents.connect(node, other)
            job.stall()
            during = await at(other, is_whole("hung"))
            stored = await _stored(db)
        finally:
            os.kill(sleeper.process.pid, signal.SIGCONT)
        awake = await at_all(servers, is_whole("hung"))
        (_, owner), _ = await processes.by_owner(db, servers)
        stored_then = await _stored(db)

        os.killpg(other.process.pid, signal.SIGKILL)
        after = await at(sleeper, lambda found: bool(found["state"] == "hung"))
        for moved in (node, other_node):
            await agents.connect(moved, sleeper)
        await processes.owned_by(db, sleeper)
        later = await at(sleeper, is_whole("hung"))
        job.progress()
        calm = await at(sleeper, is_whole("healthy"))
        found = await processes.incidents_in(db)

    assert owner is other
    assert stored_then == stored
    seen = (during, *awake, after, later)
    assert {one["index"] for one in seen} == {during["index"]}
    assert {one["incident"] for one in seen} == {found[0]}
    assert len(found) == 1
    assert calm["index"] > later["index"]


async def _stored(db: Database) -> list[tuple[int, str]]:
    """Every verdict that was ever stored, by index."""
    statement = select(verdicts.c.index, verdicts.c.new_state).order_by(verdicts.c.index)
    async with db.begin() as connection:
        return [(row.index, row.new_state) for row in await connection.execute(statement)]
