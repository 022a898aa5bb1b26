"""Who asks NCCL RAS, when, and what becomes of endpoints that are slow, foreign or broken."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.fake_ras import TEXT_2_24, FakeRank, FakeRas, communicator, status_json

from hangwatch_agent import wire
from hangwatch_agent.discover import Candidate
from hangwatch_agent.payload import GroupPayload, RecordPayload
from hangwatch_agent.process import Identity, Process
from hangwatch_agent.procfs import Procfs
from hangwatch_agent.ras import collector
from hangwatch_agent.ras.collector import Collector
from hangwatch_agent.ras.protocol import Endpoint
from hangwatch_agent.records import Record
from hangwatch_agent.tracked import Tracked

PROC = Path("/proc")
ME = Identity(pid=os.getpid(), start_ticks=0, uid=os.getuid())
MINE = status_json(communicator([FakeRank(rank=0, pid=ME.pid)]))


def rank(number: int, endpoint: Endpoint | None = None, launch: str = "job") -> Tracked:
    """This very process as a rank: the fake endpoint listens in it, under its uid."""
    where = {"NCCL_RAS_ADDR": f"{endpoint.host}:{endpoint.port}"} if endpoint else {}
    candidate = Candidate(
        identity=ME,
        rank=number,
        world_size=8,
        local_rank=0,
        is_certain=True,
        environ=where,
        arguments=(),
        ancestors=(),
    )
    found = wire.Launch(key=launch, name=launch)
    return Tracked(candidate, found, Process(Procfs(PROC), ME, ""))


def watching(ranks: list[Tracked], **options: float) -> Collector:
    return Collector(Procfs(PROC), PROC, lambda: ranks, interval_s=0.01, **options)


async def until(condition: Callable[[], object], limit_s: float = 60.0) -> None:
    async with asyncio.timeout(limit_s):
        while not condition():  # noqa: ASYNC110 - what it waits for tells nobody
            await asyncio.sleep(0.01)


def run(body: Callable[[], object]) -> None:
    asyncio.run(body())  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "TICK_S", 0.01)


async def answered(fake: FakeRas, ranks: Callable[[Endpoint], list[Tracked]]) -> Collector:
    async with fake.listening() as endpoint:
        asking = watching(ranks(endpoint))
        task = asyncio.create_task(asking.run())
        await until(asking.reports)
        task.cancel()
    return asking


@pytest.mark.parametrize(
    ("fake", "is_text"),
    [(FakeRas(answer=MINE), False), (FakeRas(answer=TEXT_2_24, knows_json=False), True)],
)
def test_node_of_rank_0_asks_and_keeps_the_answer(fake: FakeRas, is_text: bool) -> None:
    async def body() -> None:
        if is_text:
            fake.answer = TEXT_2_24.replace(b"483072", str(ME.pid).encode())
        asking = await answered(fake, lambda endpoint: [rank(0, endpoint)])
        (report,) = asking.reports()
        assert (report.launch, report.is_text) == ("job", is_text)

    run(body)


def test_other_nodes_do_not_ask_until_they_are_appointed() -> None:
    async def body() -> None:
        fake = FakeRas(answer=MINE)
        async with fake.listening() as endpoint:
            asking = watching([rank(4, endpoint)])
            task = asyncio.create_task(asking.run())
            await asyncio.sleep(0.1)
            assert fake.connections == 0

            asking.appoint(wire.AskRas(launches=("job", "foreign"), for_s=30.0))

            await until(asking.reports)
            task.cancel()

    run(body)


def test_answer_about_other_processes_is_not_taken() -> None:
    async def body() -> None:
        fake = FakeRas(answer=status_json(communicator([FakeRank(rank=0, pid=ME.pid + 1)])))
        async with fake.listening() as endpoint:
            asking = watching([rank(0, endpoint)])
            task = asyncio.create_task(asking.run())
            await until(lambda: fake.connections >= collector.TRIES)
            task.cancel()
            assert asking.reports() == ()

    run(body)


def test_stopped_process_is_tried_again_and_another_may_answer() -> None:
    async def body() -> None:
        fake = FakeRas(answer=MINE, cut_after=20)
        async with fake.listening() as endpoint:
            asking = watching([rank(0, endpoint)])
            task = asyncio.create_task(asking.run())
            await until(lambda: fake.connections >= 2)
            fake.cut_after = None
            await until(asking.reports)
            task.cancel()

    run(body)


def test_slow_endpoint_of_one_job_does_not_keep_another_job_waiting() -> None:
    async def body() -> None:
        slow, quick = FakeRas(never_ends=True), FakeRas(answer=MINE)
        async with slow.listening() as first, quick.listening() as second:
            asking = watching([rank(0, first, "slow"), rank(0, second, "quick")], timeout_s=60.0)
            task = asyncio.create_task(asking.run())
            await until(lambda: slow.connections and asking.reports())
            task.cancel()
            assert [report.launch for report in asking.reports()] == ["quick"]

    run(body)


def test_failures_are_asked_about_less_and_less_often() -> None:
    async def body() -> None:
        asking = watching([rank(0, Endpoint("127.0.0.1", 1))])
        task = asyncio.create_task(asking.run())
        await until(lambda: asking._asked and asking._asked["job"].failures >= 3)
        task.cancel()
        assert "nobody listens" in asking._asked["job"].problem

    run(body)


def test_old_answer_is_not_told_any_more() -> None:
    now_s = 100.0
    asking = Collector(Procfs(PROC), PROC, lambda: [], interval_s=1.0, clock=lambda: now_s)
    report = wire.RasReport(launch="job", number=1, age_s=0.0)
    asking._asked["job"] = collector.Asked(found=report, answered_s=now_s)
    assert asking.reports() == (report,)

    now_s += collector.KEEP_S + 1

    assert asking.reports() == ()


def payload(stall_s: float) -> RecordPayload:
    at_ns = 10**12
    group = GroupPayload(name="0", counter=3, moved_ns=at_ns - int(stall_s * 1e9))
    return RecordPayload(beat=1, at_ns=at_ns, initialised=True, groups=[group])


@pytest.mark.parametrize(("stall_s", "expected"), [(1.0, False), (6.0, True)])
def test_ranks_with_a_probe_are_asked_about_only_while_they_stand_still(
    stall_s: float, expected: bool
) -> None:
    probed = replace(rank(0), record=Record(path=Path("x"), payload=payload(stall_s)))

    assert collector.is_wanted([probed]) is expected
    assert collector.is_wanted([probed, rank(1)])
