"""The watch over the watcher on real rows: blind and sighted, each told once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text
from tests.support import alerts as support
from tests.support import outbox as house
from tests.support import verdicts as make
from tests.support.outbox import until
from tests.support.receiver import Receiver, Reply

from hangwatch_server.alerts.monitor import Heartbeat, Monitor, Patience, Senses
from hangwatch_server.alerts.speaker import Speaker
from hangwatch_server.db import blind_spells, jobs
from hangwatch_server.db.engine import Database
from hangwatch_server.model import State
from hangwatch_server.model.alerts import BlindCause, Matcher, MatchField, Topic

pytestmark = [pytest.mark.integration, pytest.mark.anyio]
NOTICES = (Topic.BLIND, Topic.SIGHTED)


@dataclass
class World:
    """What the server knows of itself, and its clock; a test changes both."""

    agents: int = 1
    failing: tuple[str, ...] = ()
    is_telling: bool = True
    now_s: float = 1000.0

    def monotonic_s(self) -> float:
        return self.now_s

    def now(self) -> datetime:
        return datetime.now(UTC)


def monitor(db: Database, world: World, server: str = "s1") -> Monitor:
    async def living() -> frozenset[str]:
        return frozenset({"s1", "s2"})

    return Monitor(
        db=db,
        senses=Senses(
            server=server,
            living=living,
            agents=lambda: world.agents,
            failing=lambda: world.failing,
        ),
        patience=Patience(after_s=120.0, share=0.5, heard_within_s=1800.0),
        clock=world,
        is_telling=lambda: world.is_telling,
        speaker=Speaker(db, server, 15.0),
    )


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver.started() as found:
        yield found


@pytest.fixture
async def job(db: Database, anyio_backend: str) -> str:
    """Id of a job that ran when it was last heard of, just now."""
    running = replace(make.job(), last_seen=datetime.now(UTC))
    await jobs.save(db, running, "run-1", {})
    return running.id


async def titles(db: Database, receiver: Receiver, count: int) -> list[str]:
    """What the receiver is told, once that is `count` messages and nothing more is planned."""
    await house.planner(db).plan()
    async with house.sending(db):
        await until(lambda: len(receiver.requests) >= count, f"{count} notices")
    assert await house.planner(db).plan() == 0
    return [request.json["data"]["title"] for request in receiver.requests]


async def test_no_agent_is_told_once_and_so_is_the_return(
    db: Database, job: str, world: World, receiver: Receiver
) -> None:
    await house.channel(db, receiver.url, topics=NOTICES)
    watching, another = monitor(db, world), monitor(db, world, "s2")
    world.agents = 0
    for later_s in (0.0, 60.0, 119.0):
        world.now_s = 1000.0 + later_s
        await watching.look()
    assert await blind_spells.to_tell(db) == []

    world.now_s = 1121.0
    for one in (watching, another, watching, another):
        await one.look()
        world.now_s += 121.0
    assert await titles(db, receiver, 1) == [
        "Hangwatch is blind: no agent is heard, and gpt-7b ran when one was"
    ]
    assert not watching.can_judge

    world.agents = 2
    await watching.look()
    await another.look()
    told = await titles(db, receiver, 2)
    assert told[1].startswith("Hangwatch sees again: it was blind for 2 min")
    assert await blind_spells.to_tell(db) == []
    await watching.look()
    assert watching.can_judge


async def test_a_job_out_of_sight_is_told_to_those_who_watch_it(
    db: Database, job: str, world: World, receiver: Receiver
) -> None:
    mine = (Matcher(field=MatchField.JOB, pattern="gpt-*"),)
    other = (Matcher(field=MatchField.JOB, pattern="llama-*"),)
    await house.channel(db, receiver.url, name="mine", topics=NOTICES, matchers=mine)
    await house.channel(db, receiver.url, name="other", topics=NOTICES, matchers=other)
    alone = replace(make.job(), reporting=2, state=State.UNKNOWN, last_seen=datetime.now(UTC))
    await jobs.save(db, alone, "run-1", {})
    watching = monitor(db, world)
    await watching.look()
    world.now_s += 121
    await watching.look()

    assert await titles(db, receiver, 1) == [
        "Hangwatch is blind: only 2 of 8 ranks of gpt-7b report"
    ]
    # Of one job alone: all others are judged, and the heartbeat goes on.
    assert watching.can_judge


async def test_a_database_that_was_away_is_told_of_afterwards_in_one_message(
    db: Database, job: str, world: World, receiver: Receiver
) -> None:
    await house.channel(db, receiver.url, topics=NOTICES)
    watching = monitor(db, world)
    await watching.look()
    await db.close()
    await watching.look()
    assert not watching.can_judge
    world.now_s += 700
    await watching.look()
    await db.open()
    await watching.look()

    assert await titles(db, receiver, 1) == ["Hangwatch sees again: it was blind for 11 min 40 s"]
    assert receiver.requests[0].json["type"] == "monitor.sighted"
    assert watching.can_judge


async def test_of_two_servers_one_tells_that_the_database_was_away_and_one_beats(
    db: Database, job: str, world: World, receiver: Receiver
) -> None:
    await house.channel(db, receiver.url, topics=NOTICES)
    both = monitor(db, world, "s1"), monitor(db, world, "s2")
    for one in both:
        await one.look()
    await db.close()
    for one in both:
        await one.look()
    world.now_s += 700
    await db.open()
    for one in reversed(both):
        await one.look()
        await one.look()

    assert len(await titles(db, receiver, 1)) == 1
    assert [one.can_judge for one in both] == [True, False]


async def test_server_whose_tasks_fail_leaves_it_to_another_to_speak_and_to_beat(
    db: Database, job: str, world: World
) -> None:
    troubled, whole = monitor(db, world, "s1"), monitor(db, World(), "s2")
    await troubled.look()
    await whole.look()
    spoke = [troubled.can_judge, whole.can_judge]

    world.failing = ("watch",)
    await troubled.look()
    await whole.look()

    assert spoke == [True, False]
    assert [troubled.can_judge, whole.can_judge] == [False, True]


async def test_a_look_that_hangs_ends_the_heartbeat(db: Database, world: World) -> None:
    watching = monitor(db, world)
    await watching.look()
    before = watching.can_judge

    world.now_s += 16.0

    assert before
    assert not watching.can_judge


async def test_a_short_fault_is_told_to_nobody(db: Database, job: str, world: World) -> None:
    watching = monitor(db, world)
    for failing in (("watch",), (), ("watch",)):
        world.failing = failing
        world.now_s += 60
        await watching.look()
    world.now_s += 119
    await watching.look()

    assert await blind_spells.to_tell(db) == []
    assert not watching.can_judge


async def test_a_task_that_keeps_failing_makes_the_monitor_blind(
    db: Database, world: World
) -> None:
    watching = monitor(db, world)
    world.failing = ("watch",)
    await watching.look()
    world.now_s += 121
    await watching.look()

    (spell,) = await blind_spells.to_tell(db)
    assert (spell.cause, spell.subject) == (BlindCause.SERVER, "s1")
    assert spell.text == "its own tasks fail again and again on s1: watch"


async def test_the_heartbeat_goes_out_while_the_monitor_can_judge_and_stops_when_it_cannot(
    db: Database, world: World, receiver: Receiver
) -> None:
    watching = monitor(db, world)
    await watching.look()
    receiver.answer_in_turn(Reply(500), Reply(200))
    async with support.outgoing() as outgoing:
        beating = Heartbeat(
            monitor=watching, outgoing=outgoing, url=f"{receiver.url}/beat", interval_s=0.01
        )
        task = asyncio.create_task(beating.run())
        await until(lambda: len(receiver.to("/beat")) >= 3, "it beats, though one was refused")
        world.is_telling = False
        await watching.look()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    assert not watching.can_judge


async def test_a_straggler_is_told_to_those_who_ask(
    db: Database, world: World, receiver: Receiver
) -> None:
    await house.channel(db, receiver.url, name="asks", topics=(Topic.SLOW,))
    await house.channel(db, receiver.url, name="asks not")
    verdict = replace(make.verdict(state=State.SLOW), summary="Rank 5 comes last. It works.")
    slow = replace(make.job(state=State.SLOW), verdict=verdict, last_seen=datetime.now(UTC))
    await jobs.save(db, slow, "run-1", {})

    assert await titles(db, receiver, 1) == ["Rank 5 comes last · gpt-7b is slow"]


async def test_a_notice_of_a_straggler_ends_when_the_job_is_itself_again(
    db: Database, receiver: Receiver
) -> None:
    await house.channel(db, receiver.url, topics=(Topic.SLOW, Topic.RESOLVED))
    now = datetime.now(UTC)
    verdict = replace(make.verdict(state=State.SLOW), summary="Rank 5 comes last. It works.")
    slow = replace(make.job(state=State.SLOW), verdict=verdict, last_seen=now)
    await jobs.save(db, slow, "run-1", {})
    await titles(db, receiver, 1)

    healthy = replace(verdict, state=State.HEALTHY, since=now)
    await jobs.save(db, replace(slow, state=State.HEALTHY, verdict=healthy), "run-1", {})
    assert await house.planner(db).plan() == 0  # it may be slow again in a moment

    for_long = replace(healthy, since=now - timedelta(minutes=2))
    await jobs.save(db, replace(slow, state=State.HEALTHY, verdict=for_long), "run-1", {})
    told = await titles(db, receiver, 2)
    assert told[1] == "No longer: Rank 5 comes last · gpt-7b is slow"
    opened, ended = (request.json for request in receiver.requests)
    assert (opened["type"], ended["type"]) == ("job.slow", "job.caught_up")
    assert opened["data"]["about"] == ended["data"]["about"]


async def test_a_job_whose_nodes_vanish_is_not_called_blind_for_ever(
    db: Database, world: World, receiver: Receiver
) -> None:
    await house.channel(db, receiver.url, topics=NOTICES)
    now = datetime.now(UTC)
    alone = replace(make.job(), reporting=0, state=State.UNKNOWN, last_seen=now)
    await jobs.save(db, alone, "run-1", {})
    watching = monitor(db, world)
    for _ in range(2):
        await watching.look()
        world.now_s += 121.0
    await watching.look()
    await titles(db, receiver, 1)

    await jobs.save(db, replace(alone, last_seen=now - timedelta(minutes=31)), "run-1", {})
    await watching.look()

    told = await titles(db, receiver, 2)
    assert told[1].startswith("Hangwatch waits for gpt-7b no longer: it was blind for ")
    assert "nothing was heard of it for 30 min" in receiver.requests[1].json["data"]["text"]


async def test_planning_uses_its_indexes(db: Database) -> None:
    """Of a month of incidents that are over, none is looked at."""
    queries = [
        "SELECT id FROM incidents WHERE confirmed_at IS NOT NULL AND told_at IS NULL "
        "ORDER BY confirmed_at, id LIMIT 500",
        "SELECT id FROM deliveries WHERE channel = 'c' AND deliveries.state = 'pending' "
        "AND next_at <= now() ORDER BY next_at LIMIT 4",
        "SELECT id FROM jobs WHERE jobs.state NOT IN ('finished', 'failed') AND last_seen > now()",
    ]
    wanted = ["incidents_to_tell", "deliveries_due", "jobs_live"]
    async with db.begin() as connection:
        await connection.execute(text("SET LOCAL enable_seqscan = off"))
        for query, index in zip(queries, wanted, strict=True):
            plan = (await connection.execute(text(f"EXPLAIN {query}"))).scalars().all()
            assert any(index in line for line in plan), plan
