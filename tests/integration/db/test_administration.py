"""Tokens, nodes, audit and retention as rows of a real Postgres."""

from __future__ import annotations

import asyncio
import dataclasses
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text
from tests.support import verdicts as make

from hangwatch_agent import wire
from hangwatch_server.db import (
    audit,
    captures,
    incidents,
    jobs,
    leases,
    node_history,
    nodes,
    retention,
    tokens,
)
from hangwatch_server.db.engine import Database
from hangwatch_server.errors import BadCursorError
from hangwatch_server.model import IncidentState, Link, NodeRow
from hangwatch_server.security import Authenticator

pytestmark = [pytest.mark.integration, pytest.mark.anyio]

NODE = NodeRow(
    name="node-b",
    link=Link.LOST,
    version="0.1.0",
    age_s=None,
    ranks=4,
    jobs=(make.job().id,),
    stacks="py-spy may not trace",
    stacks_remedy="setcap cap_sys_ptrace+ep",
    depth=wire.Depth.PROBE,
    incidents_30d=0,
    dropped=3,
    last_seen=make.SINCE,
)


def _new(name: str, **changes: Any) -> tokens.NewToken:  # Any: fields of many types
    values = {"scopes": ("agent",), "secret_hash": name, "prefix": "hw", **changes}
    return tokens.NewToken(name=name, **values)


async def test_good_tokens_are_those_that_are_neither_revoked_nor_expired(db: Database) -> None:
    made = [
        await tokens.create(db, _new(name, node="n", expires_at=expires_at))
        for name, expires_at in (
            ("endless", None),
            ("later", datetime.now(UTC) + timedelta(days=1)),
            ("expired", datetime.now(UTC) - timedelta(seconds=1)),
            ("revoked", None),
        )
    ]
    await tokens.revoke(db, made[3].id)

    good = await tokens.good(db, [*(token.id for token in made), "unknown"])

    assert good == {made[0].id, made[1].id}


async def test_token_is_found_by_its_hash_and_stays_after_it_is_revoked(db: Database) -> None:
    made = await tokens.create(db, _new("ci", scopes=("read",), node="node-a", secret_hash="abc"))
    await tokens.touch(db, made.id)

    assert await tokens.revoke(db, made.id)

    found = await tokens.find_by_hash(db, "abc")
    assert found is not None
    assert found.is_revoked
    assert found.last_used_at is not None
    assert (found.name, found.scopes, found.node) == ("ci", ("read",), "node-a")
    assert await tokens.list_all(db) == [found]
    assert await tokens.find(db, made.id) == found
    assert await tokens.count(db) == 1


async def test_unknown_token_is_none_and_cannot_be_revoked(db: Database) -> None:
    assert await tokens.find_by_hash(db, "nothing") is None
    assert not await tokens.revoke(db, "nothing")
    assert await tokens.count(db) == 0


async def test_servers_that_start_together_make_one_bootstrap_token(db: Database) -> None:
    text = "a text that all servers of a deployment are given"

    await asyncio.gather(*(Authenticator(db).bootstrap(text) for _ in range(5)))

    authenticator = Authenticator(db)
    found = await authenticator.check(text)
    assert [token.name for token in await tokens.list_all(db)] == ["bootstrap"]
    assert found is not None


async def test_bootstrap_token_that_was_revoked_stays_revoked(db: Database) -> None:
    text = "a text that got into the wrong hands"
    await Authenticator(db).bootstrap(text)
    (token,) = await tokens.list_all(db)
    await tokens.revoke(db, token.id)

    await Authenticator(db).bootstrap(text)

    assert [token.is_revoked for token in await tokens.list_all(db)] == [True]


async def test_node_is_saved_and_refreshed(db: Database) -> None:
    await nodes.save(db, [NODE])
    newer = dataclasses.replace(NODE, ranks=8, stacks="")

    await nodes.save(db, [newer])

    assert await nodes.list_all(db, {}) == [newer]
    assert await nodes.find(db, "node-b", {}) == newer
    assert await nodes.find(db, "node-c", {}) is None


async def test_node_counts_its_confirmed_incidents(db: Database) -> None:
    await nodes.save(db, [NODE])
    await jobs.save(db, make.job(), "run-1", {})
    lease = await leases.claim(db, make.job().id, "server-a", 60)
    assert lease is not None
    incident = await incidents.open_incident(db, lease, make.verdict())
    await incidents.confirm(db, lease, incident.id, make.verdict())

    found = await nodes.find(db, "node-b", await node_history.by_node(db, 30))

    assert found is not None
    assert found.incidents_30d == 1


async def test_audit_is_paged_newest_first(db: Database) -> None:
    for subject in ("a", "b", "c"):
        await audit.record(db, "ann", "capture", subject)

    first, cursor = await audit.list_page(db, limit=2)
    second, end = await audit.list_page(db, limit=2, before=cursor)

    assert [row.subject for row in first + second] == ["c", "b", "a"]
    assert end is None
    with pytest.raises(BadCursorError):
        await audit.list_page(db, before="x")


async def test_old_rows_go_but_an_active_incident_keeps_its_job(db: Database) -> None:
    for name in ("old", "hung", "new"):
        seen = datetime.now(UTC) if name == "new" else make.SINCE - timedelta(days=400)
        await jobs.save(db, make.job(name, first_seen=seen), "run", {})
    lease = await leases.claim(db, "hung", "server-a", 60)
    assert lease is not None
    active = await incidents.open_incident(db, lease, make.verdict("hung"))

    pruned = await retention.prune(db, older_than_days=90)

    assert pruned.jobs == 1
    assert {job.id for job in (await jobs.list_page(db))[0]} == {"hung", "new"}
    assert await incidents.find(db, active.id) is not None


async def test_evidence_goes_with_its_incident_and_pruned_suspicions_go_sooner(
    db: Database,
) -> None:
    await jobs.save(db, make.job("j", first_seen=datetime.now(UTC)), "run", {})
    lease = await leases.claim(db, "j", "server-a", 60)
    assert lease is not None
    ids = []
    for attempt, state in ((1, IncidentState.RESOLVED), (2, IncidentState.PRUNED)):
        incident = await incidents.open_incident(db, lease, make.verdict("j", attempt=attempt))
        await incidents.end(db, lease, incident.id, state, "progress")
        old = make.capture(f"c{attempt}", of="j", incident=incident.id)
        asked = make.SINCE - timedelta(days=400)
        await captures.create(db, dataclasses.replace(old, requested_at=asked))
        ids.append(incident.id)
    async with db.begin() as connection:
        await connection.execute(text("UPDATE incidents SET ended_at = now() - interval '3 days'"))

    pruned = await retention.prune(db, older_than_days=90)

    assert (pruned.incidents, pruned.captures) == (1, 1)
    assert await incidents.find(db, ids[0]) is not None
    assert await captures.find(db, "c1") is not None
