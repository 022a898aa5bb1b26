"""Postgres takes no writes, or begins anew, under two servers: nothing is lost meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import psutil
import psycopg
import pytest
from fastapi import Response
from tests.integration.replicas import houses
from tests.integration.replicas.houses import House, Pair, both, verdict
from tests.support import postgres as support
from tests.support.redis import RedisServer

from hangwatch_server.api import health
from hangwatch_server.db import captures, migrate
from hangwatch_server.db import incidents as incident_rows
from hangwatch_server.db.embedded import EmbeddedPostgres
from hangwatch_server.model import CaptureState, IncidentState, State, Verdict

pytestmark = [pytest.mark.integration, pytest.mark.anyio]


@pytest.fixture
def own_postgres() -> Iterator[EmbeddedPostgres]:
    """Since the test stops it. Its address stays the same."""
    with support.data_folder() as folder:
        running = EmbeddedPostgres(folder, settings=support.FAST)
        try:
            yield running
        finally:
            running.stop()


async def test_hang_during_a_database_that_takes_no_writes_is_seen_and_stored_once_it_does(
    database_url: str, migrated: str, redis_server: RedisServer
) -> None:
    async with houses.two(database_url, redis_server) as pair, houses.job_across(pair) as job:
        _read_only(migrated, pair, is_on=True)
        await both(pair, _missing, lambda text: "no writes" in text)
        ready = [await health.readyz(Response(), house.services) for house in pair]
        job.stall()
        during = await both(pair, verdict, lambda found: found.state is State.HUNG)
        _read_only(migrated, pair, is_on=False)
        after = await _hung_with_evidence(pair)
        await both(pair, _missing, lambda text: text == "")
        found = await _incidents(pair)
        kept = await captures.of_incident(pair[0].services.db, found[0])

    assert [(one.status, one.redis) for one in ready] == [("degraded", "ok")] * 2
    assert all("no writes" in one.database for one in ready)
    assert {(one.state, one.incident) for one in during} == {(State.HUNG, None)}
    assert {one.incident for one in after} == set(found)
    assert len(found) == 1
    assert CaptureState.COMPLETE in {one.state for one in kept}


async def test_hang_keeps_its_incident_and_its_evidence_over_a_database_that_was_begun_anew(
    own_postgres: EmbeddedPostgres, redis_server: RedisServer
) -> None:
    url = own_postgres.start()
    await migrate.upgrade(url)
    async with houses.two(url, redis_server) as pair, houses.job_across(pair) as job:
        job.stall()
        before = await _hung_with_evidence(pair)
        own_postgres.stop()
        await both(pair, _missing, bool)
        during = [await verdict(house) for house in pair]
        own_postgres.start()
        await both(pair, _missing, lambda text: text == "")
        after = await _hung_with_evidence(pair)
        job.progress()
        # What is not stored yet is shown under the index of what is.
        calm = await both(
            pair, verdict, lambda v: v.state is State.HEALTHY and v.index > before[0].index
        )
        found = await _incidents(pair)
        kept = await captures.of_incident(pair[0].services.db, found[0])

    assert {one.incident for one in calm} == {None}
    assert {one.state for one in during} == {State.HUNG}
    assert {one.incident for one in (*before, *during, *after)} == {found[0]}
    assert len(found) == 1
    assert any(one.state is CaptureState.COMPLETE for one in kept)


async def test_database_that_does_not_answer_is_named_and_keeps_no_server_from_leaving(
    own_postgres: EmbeddedPostgres, redis_server: RedisServer
) -> None:
    url = own_postgres.start()
    await migrate.upgrade(url)
    async with houses.two(url, redis_server) as pair, houses.job_across(pair):
        frozen = _processes_of(url)
        for process in frozen:
            process.suspend()
        try:
            missing = await both(pair, _missing, bool)
            async with asyncio.timeout(60):
                await pair[0].services.leaving.say_goodbye()
        finally:
            for process in frozen:
                process.resume()
        await both(pair, _missing, lambda text: text == "")

    assert all("cannot be reached" in text for text in missing)


def _processes_of(url: str) -> list[psutil.Process]:
    """Of this Postgres: its parent, and whoever serves a connection."""
    with psycopg.connect(support.plain(url)) as connection:
        parent = psutil.Process(connection.info.backend_pid).parent()
    assert parent is not None
    return [parent, *parent.children()]


async def _missing(house: House) -> str:
    return house.services.missing()


async def _hung_with_evidence(pair: Pair) -> list[Verdict]:
    """At both, of all ranks, under one index."""
    (first, _) = await both(pair, verdict, _is_settled)
    return await both(pair, verdict, lambda v: _is_settled(v) and v.index >= first.index)


def _is_settled(found: Verdict) -> bool:
    is_whole = found.coverage.reporting == 4 and found.action.evidence_stored
    return found.state is State.HUNG and found.incident is not None and is_whole


async def _incidents(pair: Pair) -> list[str]:
    found, _ = await incident_rows.list_page(
        pair[0].services.db, states=list(IncidentState), limit=10
    )
    return [incident.id for incident in found]


def _read_only(server_url: str, pair: Pair, *, is_on: bool) -> None:
    """As an operator or a failover makes it: for new sessions, and the old ones are ended."""
    name = pair[0].services.db.url.database
    support.execute(
        server_url,
        f"ALTER DATABASE {name} SET default_transaction_read_only = {'on' if is_on else 'off'}",
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'",  # noqa: S608
    )
