"""Two servers on one Postgres and one Redis: a job with a node at each of them."""

from __future__ import annotations

import time
from contextlib import AsyncExitStack

import msgspec
import pytest
from tests.integration.core import synthetic
from tests.integration.core.waiting import until
from tests.integration.replicas import houses
from tests.integration.replicas.houses import JOB, both, verdict
from tests.support import verdicts as make
from tests.support.redis import RedisServer

from hangwatch_agent import wire
from hangwatch_server.board.base import job_id
from hangwatch_server.db import captures as capture_rows
from hangwatch_server.db import incidents as incident_rows
from hangwatch_server.db import jobs, leases
from hangwatch_server.db.engine import Database
from hangwatch_server.model import CaptureState, IncidentState, State
from hangwatch_server.security import TokenRequest

pytestmark = [pytest.mark.integration, pytest.mark.anyio]


async def test_job_across_two_servers_has_one_verdict_and_one_incident(
    database_url: str, redis_server: RedisServer
) -> None:
    async with houses.two(database_url, redis_server) as pair, houses.job_across(pair) as job:
        job.stall()
        first = await until(lambda: verdict(pair[0]), lambda v: v.state is State.HUNG)
        second = await until(lambda: verdict(pair[1]), lambda v: v.index == first.index)
        found, _ = await incident_rows.list_page(
            pair[0].services.db, states=list(IncidentState), limit=10
        )

    assert (second.state, second.culprit_ranks) == (State.HUNG, first.culprit_ranks)
    assert second.incident == first.incident
    assert [incident.id for incident in found] == [first.incident]


async def test_long_poll_at_the_other_server_ends_when_the_verdict_changes(
    database_url: str, redis_server: RedisServer
) -> None:
    async with houses.two(database_url, redis_server) as pair, houses.job_across(pair) as job:
        owner, other = await houses.by_owner(pair)
        before = await verdict(other)
        job.stall()
        changed = await other.services.watch.verdict(JOB, index=before.index, wait_s=60)
        behind = await until(lambda: verdict(owner), lambda v: v.index >= changed.index)

    assert changed.index > before.index
    assert behind.index >= changed.index


async def test_capture_is_taken_of_a_rank_that_is_connected_to_the_other_server(
    database_url: str, redis_server: RedisServer
) -> None:
    async with houses.two(database_url, redis_server) as pair, houses.job_across(pair):
        captures = pair[0].services.captures
        asked = await captures.request(
            JOB, ranks="0,2", kinds=[wire.CaptureKind.STACKS], native=False, by="a test"
        )
        taken = await captures.wait(asked.id, 30)

    assert taken.state is CaptureState.COMPLETE
    assert {part.rank: part.node for part in taken.parts} == {0: "node-a", 2: "node-b"}


async def test_who_waits_for_a_capture_at_the_other_server_gets_it_once_it_is_finished(
    database_url: str, redis_server: RedisServer
) -> None:
    async with houses.two(database_url, redis_server) as pair, houses.job_across(pair):
        captures = [house.services.captures for house in pair]
        asked = await captures[0].request(
            JOB, ranks="0-3", kinds=[wire.CaptureKind.STACKS], native=False, by="a test"
        )
        taken = await captures[1].wait(asked.id, 30)

    assert taken.state is CaptureState.COMPLETE
    assert len(taken.parts) == 4


async def test_capture_whose_server_is_gone_is_ended_by_another(
    database_url: str, redis_server: RedisServer, db: Database
) -> None:
    await jobs.save(db, make.job(), "run-1", {})
    long_ago = make.capture("c1")
    await capture_rows.create(db, long_ago)
    async with houses.one(database_url, redis_server) as house:
        ended = await house.services.captures.wait(long_ago.id, 60)

    assert ended.state is CaptureState.PARTIAL


async def test_verdict_never_goes_back_for_who_moves_to_the_other_server(
    database_url: str, redis_server: RedisServer
) -> None:
    async with houses.two(database_url, redis_server) as pair, houses.job_across(pair) as job:
        owner, other = await houses.by_owner(pair)
        seen = []
        for change in (job.stall, job.progress, job.stall):
            before = await verdict(owner)
            change()
            index = (await owner.services.watch.verdict(JOB, index=before.index, wait_s=60)).index
            moved = await other.services.watch.verdict(JOB, index=index)
            seen.append((index, moved.index))

    assert all(index <= moved for index, moved in seen), seen


async def test_node_with_a_live_connection_at_one_server_is_refused_by_the_other(
    database_url: str, redis_server: RedisServer
) -> None:
    async with houses.two(database_url, redis_server) as pair, houses.job_across(pair):
        token = await pair[1].token("node-a")
        async with synthetic.dialled(pair[1].url, token) as line:
            await line.send(wire.encode(synthetic.hello("node-a")))
            answer = await synthetic.answer(line)

    assert isinstance(answer, wire.Refused)
    assert answer.code == "duplicate_node"


async def test_what_an_agent_may_not_speak_of_is_told_to_no_other_server(
    database_url: str, redis_server: RedisServer
) -> None:
    job = synthetic.Job(time.monotonic)
    ours, theirs = wire.Launch(key="launch-2", name="llm-1"), wire.Launch(key="x", name="gpt")
    beats = [
        msgspec.structs.replace(job.beat(0), launch=launch.key, groups=())
        for launch in (ours, theirs)
    ]
    said = wire.Heartbeat(
        number=1, launches=(ours, theirs), ranks=tuple(beats), groups=(), is_full=True
    )
    async with houses.two(database_url, redis_server) as (one, two):
        wanted = TokenRequest(name="a team's", scopes=("agent",), node="node-a", jobs="llm-*")
        _, token = await one.services.tokens.create(wanted)
        async with synthetic.dialled(one.url, token) as line:
            await line.send(wire.encode(synthetic.hello("node-a")))
            await synthetic.answer(line)
            await line.send(wire.encode(said))
            known = await until(lambda: _jobs(two), lambda jobs: len(jobs) > 0)

    assert known == (job_id(ours.key),)


async def _jobs(house: houses.House) -> tuple[str, ...]:
    return house.services.board.jobs()


async def test_node_may_come_to_the_other_server_once_its_connection_is_closed(
    database_url: str, redis_server: RedisServer
) -> None:
    async with houses.two(database_url, redis_server) as (one, two):
        job = synthetic.Job(one.clock.monotonic_s)
        token = await one.token("node-a")
        async with synthetic.agent(one.url, token, "node-a", job, range(4), 0.3):
            await until(lambda: verdict(two), lambda found: found.state is State.HEALTHY)
        await until(lambda: houses.links(two), lambda links: links["node-a"] == "late")
        async with synthetic.agent(two.url, token, "node-a", job, range(4), 0.3):
            await both((one, two), houses.links, lambda links: links["node-a"] == "live")


async def test_verdict_stands_at_the_other_server_when_the_owner_is_stopped_in_order(
    database_url: str, redis_server: RedisServer
) -> None:
    async with houses.one(database_url, redis_server) as stays, AsyncExitStack() as stack:
        stops = await stack.enter_async_context(houses.one(database_url, redis_server))
        job = synthetic.Job(stays.clock.monotonic_s, odd_op="broadcast")
        token = await stays.token("node-a")
        async with synthetic.agent(stops.url, token, "node-a", job, range(4), 0.3):
            await houses.healthy(stops)
            job.stall()
            before = await until(lambda: verdict(stops), lambda v: v.state is State.HUNG)
            await until(lambda: verdict(stays), lambda v: v.index == before.index)
            await stack.aclose()
        links = await houses.links(stays)
        async with synthetic.agent(stays.url, token, "node-a", job, range(4), 0.3):
            holder = await until(
                lambda: leases.holder(stays.services.db, JOB), lambda name: name != ""
            )
            after = await until(lambda: verdict(stays), lambda v: v.coverage.reporting == 4)
            found, _ = await incident_rows.list_page(
                stays.services.db, states=list(IncidentState), limit=10
            )

    assert links["node-a"] == "late"
    assert holder
    assert (after.index, after.incident) == (before.index, before.incident)
    assert [incident.id for incident in found] == [before.incident]


async def test_server_that_comes_later_knows_the_jobs_of_the_first(
    database_url: str, redis_server: RedisServer
) -> None:
    async with houses.one(database_url, redis_server) as first:
        job = synthetic.Job(first.clock.monotonic_s)
        token = await first.token("node-a")
        async with synthetic.agent(first.url, token, "node-a", job, range(4), 0.3):
            await until(lambda: verdict(first), lambda found: found.state is State.HEALTHY)
            async with houses.one(database_url, redis_server) as later:
                seen = await houses.healthy(later)
                groups = await later.services.watch.groups(JOB)

    assert seen.index == 1
    assert [row.name for row in groups] == ["default_pg"]
