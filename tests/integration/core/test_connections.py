"""What an agent's connection may not do, and that only the connection that does it suffers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import pytest
import websockets
from sqlalchemy import text
from tests.integration.core import house, synthetic
from tests.integration.core.waiting import until
from websockets.asyncio.client import ClientConnection

from hangwatch_agent import wire
from hangwatch_server import metrics
from hangwatch_server.board.base import job_id
from hangwatch_server.ingest import hub
from hangwatch_server.security import TokenRequest

pytestmark = [pytest.mark.integration, pytest.mark.anyio]
JOB = job_id(synthetic.KEY)


async def refusal(line: ClientConnection) -> wire.Refused:
    frame = await synthetic.answer(line)
    assert isinstance(frame, wire.Refused), frame
    with pytest.raises(websockets.ConnectionClosed):
        await synthetic.answer(line)
    return frame


async def ask(line: ClientConnection, data: bytes) -> wire.ServerFrame:
    await line.send(data)
    return await synthetic.answer(line)


async def test_wrong_token_is_refused_with_what_to_do(database_url: str) -> None:
    async with (
        house.open_house(database_url) as server,
        synthetic.dialled(server.url, "hw_wrong_token") as line,
    ):
        refused = await refusal(line)

    assert refused.code == "unauthorised"
    assert "hangwatch token create" in refused.reason


async def test_token_without_scope_agent_is_refused(database_url: str) -> None:
    async with house.open_house(database_url) as server:
        _, text = await server.services.tokens.create(TokenRequest(name="reader", scopes=("read",)))
        async with synthetic.dialled(server.url, text) as line:
            refused = await refusal(line)

    assert refused.code == "unauthorised"


async def test_token_of_another_node_is_refused(database_url: str) -> None:
    async with house.open_house(database_url) as server:
        token = await server.token("node-a")
        async with synthetic.dialled(server.url, token) as line:
            await line.send(wire.encode(synthetic.hello("node-b")))
            refused = await refusal(line)
        nodes = await server.services.watch.nodes()

    assert refused.code == "wrong_node"
    assert nodes == ()


async def test_second_live_connection_of_a_node_is_refused_and_the_first_goes_on(
    database_url: str,
) -> None:
    async with house.open_house(database_url) as server:
        job = synthetic.Job(server.clock.monotonic_s)
        token = await server.token("node-a")
        async with synthetic.agent(server.url, token, "node-a", job, range(4)) as first:
            async with synthetic.dialled(server.url, token) as line:
                await line.send(wire.encode(synthetic.hello("node-a")))
                refused = await refusal(line)
            job.progress()
            asked = await until(
                lambda: server.services.watch.job(JOB), lambda found: found.reporting == 4
            )

    assert refused.code == "duplicate_node"
    assert refused.retry_after_s is not None
    assert asked.reporting == 4
    assert not first.refused


async def test_half_dead_connection_does_not_lock_its_node_out(database_url: str) -> None:
    async with house.open_house(database_url, speed=50.0) as server:
        token = await server.token("node-a")
        async with synthetic.dialled(server.url, token) as silent:
            await silent.send(wire.encode(synthetic.hello("node-a")))
            await synthetic.answer(silent)
            await until(
                lambda: server.services.watch.node("node-a"), lambda node: node.link != "live"
            )
            async with synthetic.dialled(server.url, token) as line:
                await line.send(wire.encode(synthetic.hello("node-a")))
                welcome = await synthetic.answer(line)
            with pytest.raises(websockets.ConnectionClosed):
                await synthetic.answer(silent)

    assert isinstance(welcome, wire.Welcome)


async def test_connection_that_broke_while_its_part_waited_does_not_lock_its_node_out(
    database_url: str,
) -> None:
    async with house.open_house(database_url, speed=50.0) as server, AsyncExitStack() as stack:
        token = await server.token("node-a")
        broken = await stack.enter_async_context(synthetic.dialled(server.url, token))
        await broken.send(wire.encode(synthetic.hello("node-a")))
        await synthetic.answer(broken)
        busy = await stack.enter_async_context(server.services.db.begin())
        await busy.execute(text("LOCK TABLE captures"))
        await broken.send(wire.encode(synthetic.part_of("any", 0)))
        broken.transport.abort()
        silent_since_s = server.clock.monotonic_s()
        await until(
            lambda: _now(server), lambda now_s: now_s - silent_since_s > 2 * hub.HALF_DEAD_S
        )

        line = await stack.enter_async_context(synthetic.dialled(server.url, token))
        await line.send(wire.encode(synthetic.hello("node-a")))
        welcome = await synthetic.answer(line)

    assert isinstance(welcome, wire.Welcome)


async def _now(server: house.House) -> float:
    return server.clock.monotonic_s()


async def test_agent_whose_token_is_revoked_is_shown_out_and_no_other(database_url: str) -> None:
    async with house.open_house(database_url) as server:
        job = synthetic.Job(server.clock.monotonic_s)
        tokens = server.services.tokens
        revoked, text_a = await tokens.create(
            TokenRequest(name="a", scopes=("agent",), node="node-a")
        )
        async with (
            synthetic.agent(server.url, text_a, "node-a", job, (0, 1)) as one,
            synthetic.agent(server.url, await server.token("node-b"), "node-b", job, (2, 3)) as two,
        ):
            await tokens.revoke(revoked.id)
            node = await until(
                lambda: server.services.watch.node("node-a"), lambda node: node.link != "live"
            )
            await until(_refusals(one), bool)
            other = await server.services.watch.node("node-b")

    assert [frame.code for frame in one.refused] == ["unauthorised"]
    assert node.link == "late"
    assert not two.refused
    assert other.link == "live"


def _refusals(agent: synthetic.Agent) -> Callable[[], Awaitable[list[wire.Refused]]]:
    async def refusals() -> list[wire.Refused]:
        return agent.refused

    return refusals


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\xc1 garbage", "malformed"),
        (wire.encode(synthetic.hello("node-x")), "wrong_node"),
        (
            wire.encode(
                wire.Heartbeat(
                    number=1,
                    launches=(),
                    ranks=(
                        wire.RankBeat(
                            launch="x",
                            rank=9,
                            local_rank=0,
                            world_size=4,
                            pid=1,
                            start_ticks=1,
                            process=wire.ProcessFacts(state="S"),
                        ),
                    ),
                )
            ),
            "malformed",
        ),
        (
            wire.encode(
                wire.Heartbeat(
                    number=1,
                    launches=(),
                    ranks=(),
                    groups=(
                        wire.GroupInfo(
                            gid="0" * 12,
                            launch="x",
                            name="forged",
                            description="",
                            backend="gloo",
                            ranks="0-3",
                        ),
                    ),
                )
            ),
            "malformed",
        ),
    ],
    ids=["garbage", "another node", "rank outside its world", "forged group id"],
)
async def test_bad_frame_ends_its_connection_with_a_reason_and_no_other(
    database_url: str, data: bytes, code: str
) -> None:
    async with house.open_house(database_url) as server:
        job = synthetic.Job(server.clock.monotonic_s)
        good, bad = await server.token("node-a"), await server.token("node-b")
        before = metrics.frames_refused.labels(code)._value.get()
        async with synthetic.agent(server.url, good, "node-a", job, range(4)) as first:
            async with synthetic.dialled(server.url, bad) as line:
                await line.send(wire.encode(synthetic.hello("node-b")))
                await synthetic.answer(line)
                await line.send(data)
                refused = await refusal(line)
            found = await until(
                lambda: server.services.watch.job(JOB), lambda found: found.reporting == 4
            )

    assert refused.code == code
    assert refused.reason
    assert metrics.frames_refused.labels(code)._value.get() == before + 1
    assert found.reporting == 4
    assert not first.refused


async def test_frame_over_the_limit_ends_its_connection_only(database_url: str) -> None:
    async with house.open_house(database_url) as server:
        job = synthetic.Job(server.clock.monotonic_s)
        good, bad = await server.token("node-a"), await server.token("node-b")
        async with synthetic.agent(server.url, good, "node-a", job, range(4)) as first:
            async with synthetic.dialled(server.url, bad) as line:
                await line.send(wire.encode(synthetic.hello("node-b")))
                await synthetic.answer(line)
                with pytest.raises(websockets.ConnectionClosed) as closed:
                    await ask(line, b"\0" * (wire.MAX_FRAME_BYTES + 1))
            found = await until(
                lambda: server.services.watch.job(JOB), lambda found: found.reporting == 4
            )

    assert closed.value.rcvd is None or closed.value.rcvd.code == 1009
    assert found.reporting == 4
    assert not first.refused


async def test_part_for_a_rank_of_another_node_is_refused(database_url: str) -> None:
    async with house.open_house(database_url) as server:
        job = synthetic.Job(server.clock.monotonic_s)
        services = server.services
        own, other = await server.token("node-a"), await server.token("node-b")
        async with (
            synthetic.dialled(server.url, own) as owner,
            synthetic.dialled(server.url, other) as forger,
        ):
            for line, node, ranks in ((owner, "node-a", (0, 1)), (forger, "node-b", (2, 3))):
                await line.send(wire.encode(synthetic.hello(node)))
                await synthetic.answer(line)
                await synthetic.Agent(line, node, job, ranks).beat()
            await until(lambda: services.watch.job(JOB), lambda found: found.reporting == 4)
            capture = await services.captures.request(
                JOB, ranks="0", kinds=["stacks"], native=False, by="tester"
            )

            await forger.send(wire.encode(synthetic.part_of(capture.id, 0)))
            refused = await refusal(forger)
            asked = await synthetic.answer(owner)
            await owner.send(wire.encode(synthetic.part_of(capture.id, 0)))
            stored = await synthetic.answer(owner)
            done = await services.captures.wait(capture.id, 60)

    assert refused.code == "wrong_node"
    assert isinstance(asked, wire.TakeCapture)
    assert isinstance(stored, wire.Stored)
    assert [(part.rank, part.node, part.has_stacks) for part in done.parts] == [(0, "node-a", True)]


async def test_part_that_belongs_to_nothing_is_acknowledged_so_that_its_agent_forgets_it(
    database_url: str,
) -> None:
    async with house.open_house(database_url) as server:
        token = await server.token("node-a")
        async with synthetic.dialled(server.url, token) as line:
            await line.send(wire.encode(synthetic.hello("node-a")))
            await synthetic.answer(line)
            await line.send(wire.encode(synthetic.part_of("deleted", 0)))
            answer = await synthetic.answer(line)

    assert answer == wire.Stored(capture="deleted", launch=synthetic.KEY, rank=0)
