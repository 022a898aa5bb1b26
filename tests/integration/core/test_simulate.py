"""Each fault of a simulated job gets its verdict over the real wire, on a faster clock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.integration.core import house
from tests.integration.core.house import House
from tests.integration.core.waiting import until

from hangwatch_agent import wire
from hangwatch_server import ranges
from hangwatch_server.board.base import job_id
from hangwatch_server.errors import HangwatchError
from hangwatch_server.model import Condition, State, Verdict
from hangwatch_server.security import TokenRequest
from hangwatch_server.simulate import agents, faults
from hangwatch_server.simulate.faults import Fault
from hangwatch_server.simulate.play import Play

pytestmark = [pytest.mark.integration, pytest.mark.anyio]
SPEED = 5.0
INTERVAL_S = 0.2  # as much less as the clock is faster
LAUNCH = wire.Launch(key="launch of a made-up job", name="made-up")
JOB = job_id(LAUNCH.key)
CONDITIONS = {
    Fault.DATALOADER: Condition.IN_DATALOADER,
    Fault.KILLED: Condition.KILLED,
    Fault.DEADLOCK: Condition.IN_COLLECTIVE,
}


@asynccontextmanager
async def played(server: House, fault: Fault, ranks: int, nodes: int) -> AsyncIterator[Play]:
    _, token = await server.services.tokens.create(
        TokenRequest(name="of a test", scopes=("admin",))
    )
    play = Play(faults.scene(fault, ranks, nodes), LAUNCH, fault_after_s=8.0)
    play.started_s = server.clock.monotonic_s()
    url = server.url.replace("ws://", "http://").partition("/api/")[0]
    beating = asyncio.create_task(agents.run(play, url, token, clock_s=server.clock.monotonic_s))
    try:
        yield play
    finally:
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)


@pytest.mark.parametrize("fault", [fault for fault in Fault if fault is not Fault.HEALTHY])
async def test_fault_gets_its_kind_and_culprits(database_url: str, fault: Fault) -> None:
    async with (
        house.open_house(database_url, SPEED, interval_s=INTERVAL_S) as server,
        played(server, fault, 64, 8) as play,
    ):

        async def verdict() -> Verdict:
            return await server.services.watch.verdict(JOB)

        moving = await until(verdict, lambda found: found.state is State.HEALTHY)
        hung = await until(verdict, lambda found: found.state is State.HUNG)

    assert moving.coverage.reporting == 64
    assert (hung.kind, hung.culprit_ranks) == (
        play.scene.kind,
        ranges.text(play.scene.culprits),
    )
    expected = CONDITIONS.get(fault)
    assert expected is None or {culprit.condition for culprit in hung.culprits} == {expected}


async def test_captures_of_a_simulated_job_hold_stacks_and_entries(database_url: str) -> None:
    async with (
        house.open_house(database_url, interval_s=INTERVAL_S) as server,
        played(server, Fault.HEALTHY, 16, 2),
    ):
        services = server.services
        await until(lambda: services.watch.job(JOB), lambda found: found.reporting == 16)
        asked = await services.captures.request(
            JOB, ranks="0-15", kinds=["stacks"], native=False, by="tester"
        )
        await services.captures.wait(asked.id, 60)
        tree = await services.captures.tree(asked.id)

    assert tree.missing == ()
    assert ranges.text(rank for row in tree.classes for rank in ranges.parse(row.ranks)) == "0-15"
    assert {"train.py", "loop.py"} <= {
        frame.file.rpartition("/")[2] for row in tree.classes for frame in row.frames
    }


async def test_token_that_speaks_for_no_agent_ends_it_with_the_reason(database_url: str) -> None:
    async with house.open_house(database_url) as server:
        _, token = await server.services.tokens.create(
            TokenRequest(name="reader", scopes=("read",))
        )
        play = Play(faults.scene(Fault.HEALTHY, 2, 1), LAUNCH)
        url = server.url.replace("ws://", "http://").partition("/api/")[0]

        with pytest.raises(ExceptionGroup) as caught:
            await agents.run(play, url, token)

    assert caught.group_contains(HangwatchError, match="has no scope agent")
