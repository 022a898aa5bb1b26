"""Redis is away, slow, full or begun anew: no false hang, nothing lost, and it is said."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tests.integration.core import synthetic
from tests.integration.core.waiting import until
from tests.integration.replicas import houses
from tests.integration.replicas.houses import JOB, Pair, both, verdict
from tests.support.redis import RedisServer

from hangwatch_agent import wire
from hangwatch_server.db import incidents as incident_rows
from hangwatch_server.model import CaptureState, IncidentState, State

pytestmark = [pytest.mark.integration, pytest.mark.anyio]
# A node is lost well before the end of what these tests do to Redis.
SOON_LOST = {"agent_late_s": 1.5, "agent_lost_s": 4.0}


async def incidents_of(pair: Pair) -> list[str]:
    found, _ = await incident_rows.list_page(
        pair[0].services.db, states=list(IncidentState), limit=10
    )
    return [incident.id for incident in found]


async def deaf(pair: Pair) -> None:
    await both(pair, houses.missing, lambda text: "Redis" in text)


async def past_lost(pair: Pair) -> None:
    """Until a node that was last heard just before has been silent for longer than a lost one."""
    end_s = pair[0].clock.monotonic_s() + 2.5  # and two until they knew
    while pair[0].clock.monotonic_s() < end_s:
        for house in pair:
            assert (await verdict(house)).state in (State.HEALTHY, State.UNKNOWN)
        await asyncio.sleep(0.05)


async def test_job_is_unknown_while_redis_is_gone_and_healthy_once_it_is_back(
    database_url: str, redis_server: RedisServer
) -> None:
    async with (
        houses.two(database_url, redis_server, **SOON_LOST) as pair,
        houses.job_across(pair),
    ):
        redis_server.kill()
        await deaf(pair)
        await past_lost(pair)
        seen = [await verdict(house) for house in pair]
        redis_server.start()
        for house in pair:
            await houses.hearing(house)
            await houses.healthy(house)
        found = await incidents_of(pair)

    assert [one.state for one in seen] == [State.UNKNOWN, State.UNKNOWN]
    assert [one.coverage.reporting for one in seen] == [2, 2]
    assert found == []


async def test_hang_keeps_its_incident_over_a_redis_that_was_gone(
    database_url: str, redis_server: RedisServer
) -> None:
    async with (
        houses.two(database_url, redis_server, **SOON_LOST) as pair,
        houses.job_across(pair) as job,
    ):
        job.stall()
        before = await until(lambda: verdict(pair[0]), lambda found: found.state is State.HUNG)
        redis_server.kill()
        await deaf(pair)
        during = await verdict(pair[0])
        redis_server.start()
        after = await both(
            pair, verdict, lambda v: v.state is State.HUNG and v.coverage.reporting == 4
        )
        found = await incidents_of(pair)

    assert during.incident == before.incident
    assert {one.incident for one in after} == {before.incident}
    assert found == [before.incident]


async def test_redis_that_stops_answering_and_goes_on_raises_no_alarm(
    database_url: str, redis_server: RedisServer
) -> None:
    async with (
        houses.two(database_url, redis_server, **SOON_LOST) as pair,
        houses.job_across(pair),
    ):
        redis_server.pause()
        await deaf(pair)
        await past_lost(pair)
        redis_server.go_on()
        for house in pair:
            await houses.hearing(house)
            await houses.healthy(house)
        found = await incidents_of(pair)

    assert found == []


async def test_redis_that_answers_late_raises_no_alarm_and_hides_none(
    database_url: str, redis_server: RedisServer
) -> None:
    async with houses.two(database_url, redis_server) as pair, houses.job_across(pair) as job:
        for _ in range(3):
            await asyncio.to_thread(redis_server.command, "DEBUG", "SLEEP", "1")
            seen = await both(pair, verdict, lambda found: found.state is not State.STARTING)
            assert {one.state for one in seen} <= {State.HEALTHY, State.UNKNOWN}
        before = await incidents_of(pair)
        job.stall()
        await both(pair, verdict, lambda found: found.state is State.HUNG)

    assert before == []


async def test_server_that_starts_without_its_redis_says_why_in_the_log(database_url: str) -> None:
    nowhere = RedisServer(Path("/nowhere"))
    with capture_logs() as lines:

        async def away() -> list[str]:
            return [line["error"] for line in lines if line["event"] == "redis_away"]

        async with houses.one(database_url, nowhere):
            said = await until(away, bool)

    assert "/nowhere/redis.sock" in said[0]


async def test_full_redis_stops_nothing(database_url: str, redis_server: RedisServer) -> None:
    async with houses.two(database_url, redis_server) as pair, houses.job_across(pair) as job:
        redis_server.command("CONFIG", "SET", "maxmemory-policy", "noeviction")
        redis_server.command("CONFIG", "SET", "maxmemory", "1")
        job.stall()
        first = await until(lambda: verdict(pair[0]), lambda found: found.state is State.HUNG)
        second = await until(lambda: verdict(pair[1]), lambda found: found.index == first.index)
        missing = [await houses.missing(house) for house in pair]

    assert second.incident == first.incident
    assert missing == ["", ""]


async def test_capture_of_a_rank_behind_a_redis_that_is_gone_is_refused_with_a_reason(
    database_url: str, redis_server: RedisServer
) -> None:
    async with houses.two(database_url, redis_server) as pair, houses.job_across(pair):
        redis_server.kill()
        captures = pair[0].services.captures
        asked = await captures.request(
            JOB, ranks="0,2", kinds=[wire.CaptureKind.STACKS], native=False, by="a test"
        )
        taken = await captures.wait(asked.id, 30)

    reasons = {part.rank: part.reason for part in taken.parts}
    assert taken.state is CaptureState.PARTIAL
    assert reasons[0] == ""
    assert "Redis is away" in reasons[2]


async def test_of_two_connections_of_one_node_one_stays_once_servers_hear_each_other(
    database_url: str, redis_server: RedisServer
) -> None:
    async with houses.two(database_url, redis_server) as (one, two):
        job = synthetic.Job(one.clock.monotonic_s)
        token = await one.token("node-a")
        redis_server.kill()
        await deaf((one, two))
        async with (
            synthetic.agent(one.url, token, "node-a", job, range(4), 0.3) as first,
            synthetic.agent(two.url, token, "node-a", job, range(4), 0.3) as second,
        ):
            redis_server.start()
            refused = await until(lambda: refusals(first, second), lambda found: len(found) > 0, 15)
            await both((one, two), houses.links, lambda links: links["node-a"] == "live")
            refused_in_all = await refusals(first, second)

    assert refused[0].code == "duplicate_node"
    assert len(refused_in_all) == 1


async def refusals(*agents: synthetic.Agent) -> list[wire.Refused]:
    return [refused for agent in agents for refused in agent.refused]
