"""A server is asked to stop while another one stays: nobody is without a server meanwhile."""

from __future__ import annotations

import signal
from contextlib import AsyncExitStack

import httpx
import pytest
from tests.integration.core import synthetic
from tests.integration.core.waiting import until
from tests.integration.replicas import houses
from tests.integration.replicas.houses import JOB, verdict
from tests.support import postgres, running_server, waiting
from tests.support.redis import RedisServer

from hangwatch_agent import wire
from hangwatch_server.db import incidents as incident_rows
from hangwatch_server.db import leases
from hangwatch_server.model import IncidentState, State

pytestmark = [pytest.mark.integration, pytest.mark.anyio]
NODE = "node-a"


async def test_jobs_and_agents_move_to_the_other_server_and_the_verdict_stands(
    database_url: str, redis_server: RedisServer
) -> None:
    async with houses.one(database_url, redis_server) as stays, AsyncExitStack() as stack:
        stops = await stack.enter_async_context(houses.one(database_url, redis_server))
        for house in (stays, stops):
            await houses.hearing(house)
        job = synthetic.Job(stays.clock.monotonic_s, odd_op="broadcast")
        token = await stays.token(NODE)
        async with synthetic.agent(stops.url, token, NODE, job, range(4), 0.3) as agent:
            job.stall()
            before = await until(lambda: verdict(stops), lambda v: v.state is State.HUNG)
            await stops.services.leaving.say_goodbye()
            refusals = await until(lambda: refused(agent), bool)
        await until(lambda: stays.services.relay.holder(NODE), lambda name: name == "")
        links = await houses.links(stays)
        async with synthetic.agent(stays.url, token, NODE, job, range(4), 0.3):
            holder = await until(
                lambda: leases.holder(stays.services.db, JOB),
                lambda name: name != "",
            )
            after = await until(lambda: verdict(stays), lambda v: v.coverage.reporting == 4)
            found, _ = await incident_rows.list_page(
                stays.services.db, states=list(IncidentState), limit=10
            )

    assert [one.code for one in refusals] == [wire.GOING_AWAY]
    assert links[NODE] == "live"
    assert holder == stays.services.alerts.monitor.senses.server
    assert (after.state, after.index, after.incident) == (
        State.HUNG,
        before.index,
        before.incident,
    )
    assert [incident.id for incident in found] == [before.incident]


async def test_agent_that_comes_to_a_server_that_leaves_is_sent_on(
    database_url: str, redis_server: RedisServer
) -> None:
    async with houses.two(database_url, redis_server) as (stays, stops):
        token = await stays.token(NODE)
        await stops.services.leaving.say_goodbye()
        async with synthetic.dialled(stops.url, token) as line:
            await line.send(wire.encode(synthetic.hello(NODE)))
            answer = await synthetic.answer(line)

    assert isinstance(answer, wire.Refused)
    assert answer.code == wire.GOING_AWAY
    assert answer.retry_after_s is not None


def test_server_that_is_asked_to_stop_says_so_and_serves_on_until_it_is_asked_again(
    database_url: str,
) -> None:
    settings = {"HANGWATCH_DRAIN_S": "600"}
    with (
        postgres.data_folder() as folder,
        running_server.running(database_url, folder, settings) as server,
        server.client() as client,
    ):
        before = client.get("/readyz")
        server.process.send_signal(signal.SIGTERM)
        waiting.until(lambda: _is_stopping(client), 60, "/readyz says that the server stops")
        during = client.get("/readyz"), client.get("/api/v1/jobs")
        code = server.stop()

    assert (before.status_code, before.json()["stopping"]) == (200, False)
    assert (during[0].status_code, during[0].json()["status"]) == (503, "not ready")
    assert during[1].status_code == 200
    assert code == 0


def _is_stopping(client: httpx.Client) -> bool:
    return bool(client.get("/readyz").json()["stopping"])


async def refused(agent: synthetic.Agent) -> list[wire.Refused]:
    return agent.refused
