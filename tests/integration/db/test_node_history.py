"""What confirmed incidents say about nodes, out of a real Postgres."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text
from tests.support import verdicts as make

from hangwatch_server.db import incidents, jobs, leases, node_history
from hangwatch_server.db.engine import Database
from hangwatch_server.db.leases import Lease

pytestmark = [pytest.mark.integration, pytest.mark.anyio]

JOB = make.job().id
NOW = datetime.now(UTC)


@pytest.fixture
async def lease(db: Database) -> Lease:
    await jobs.save(db, replace(make.job(), last_seen=NOW), "run-1", {})
    lease = await leases.claim(db, JOB, "server-a", 60)
    assert lease is not None
    return lease


async def _confirmed(db: Database, lease: Lease, attempt: int, node: str) -> str:
    verdict = make.verdict(attempt=attempt, node=node)
    incident = await incidents.open_incident(db, lease, verdict)
    await incidents.confirm(db, lease, incident.id, verdict)
    return incident.id


async def test_confirmed_incidents_count_and_suspicions_do_not(db: Database, lease: Lease) -> None:
    for attempt, node in ((1, "node-a"), (2, "node-b"), (3, "node-b")):
        await _confirmed(db, lease, attempt, node)
    await incidents.open_incident(db, lease, make.verdict(attempt=4, node="node-c"))

    found = await node_history.by_node(db, 30)

    assert {node: history.incidents for node, history in found.items()} == {
        "node-b": 2,
        "node-a": 1,
    }
    assert await node_history.by_node(db, 0) == {}


async def test_hours_lost_end_with_the_last_word_of_the_job(db: Database, lease: Lease) -> None:
    """A job that is gone must not cost more with every hour that its incident stays open."""
    incident = await _confirmed(db, lease, 1, "node-b")
    async with db.begin() as connection:
        await connection.execute(
            text("UPDATE incidents SET opened_at = :at WHERE id = :id"),
            {"at": NOW - timedelta(hours=2), "id": incident},
        )

    history = (await node_history.by_node(db, 30))["node-b"]

    assert history.gpu_hours_lost == pytest.approx(14.0, abs=0.01)  # 7 ranks waited for 2 h
    assert history.last_incident_at == NOW - timedelta(hours=2)
