"""Servers on one Postgres and one Redis in this event loop, and a job that lies across two."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TypeVar

import websockets
from tests.integration.core import synthetic
from tests.integration.core.house import House, open_house
from tests.integration.core.waiting import until
from tests.support.redis import RedisServer

from hangwatch_server.board.base import job_id
from hangwatch_server.model import Link, State, Verdict

JOB = job_id(synthetic.KEY)
# Proof of a mismatch, and the end of a lease: what these tests would wait for most.
SOON = {"tick_s": 0.25, "hard_apart_s": 0.5, "lease_ttl_s": 3.0}
Pair = tuple[House, House]
T = TypeVar("T")


def one(url: str, redis: RedisServer, **changes: object) -> AbstractAsyncContextManager[House]:
    """At the ordinary pace, as calls over Redis are timed by the same clock; limits are short."""
    return open_house(url, redis_url=redis.url, **{**SOON, **changes})


@asynccontextmanager
async def two(url: str, redis: RedisServer, **changes: object) -> AsyncIterator[Pair]:
    """Both hear each other."""
    async with one(url, redis, **changes) as first, one(url, redis, **changes) as second:
        for house in (first, second):
            await hearing(house)
        yield first, second


async def both(
    pair: Pair, get: Callable[[House], Awaitable[T]], is_met: Callable[[T], bool]
) -> list[T]:
    """The first value of each server that meets the condition."""
    return [await until(partial(get, house), is_met) for house in pair]


async def hearing(house: House) -> None:
    """Until it knows what the others know, and nothing is missing."""
    await until(lambda: _lacks(house), lambda lacks: not lacks, 60)


async def _lacks(house: House) -> bool:
    relay = house.services.relay
    return relay.is_new() or relay.missing() != ""


async def missing(house: House) -> str:
    return house.services.relay.missing()


async def verdict(house: House) -> Verdict:
    return await house.services.watch.verdict(JOB)


async def links(house: House) -> dict[str, Link]:
    return house.services.board.links(house.clock.monotonic_s())


@asynccontextmanager
async def job_across(pair: Pair) -> AsyncIterator[synthetic.Job]:
    """Four healthy ranks, two at each server; a stall of theirs is a mismatch."""
    job = synthetic.Job(pair[0].clock.monotonic_s, odd_op="broadcast")
    tokens = await pair[0].token("node-a"), await pair[0].token("node-b")
    agents = [
        asyncio.create_task(_lasting(pair[0].url, tokens[0], "node-a", job, (0, 1))),
        asyncio.create_task(_lasting(pair[1].url, tokens[1], "node-b", job, (2, 3))),
    ]
    try:
        for house in pair:
            await healthy(house)
        yield job
    finally:
        for agent in agents:
            agent.cancel()
        await asyncio.gather(*agents, return_exceptions=True)


async def _lasting(
    url: str, token: str, node: str, job: synthetic.Job, ranks: tuple[int, ...]
) -> None:
    """An agent that comes back whenever its connection has ended."""
    while True:
        with contextlib.suppress(synthetic.TurnedAwayError, websockets.WebSocketException, OSError):
            async with synthetic.agent(url, token, node, job, ranks, 0.3) as made:
                await made.line.wait_closed()
        await asyncio.sleep(0.2)


async def healthy(house: House) -> Verdict:
    return await until(
        lambda: verdict(house),
        lambda found: found.state is State.HEALTHY and found.coverage.reporting == 4,
    )


async def by_owner(pair: Pair) -> Pair:
    """The server that owns the job's detection, and the other one."""
    is_first = not pair[0].services.watch.is_followed(JOB)
    return pair if is_first else (pair[1], pair[0])
