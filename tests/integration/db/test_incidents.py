"""Incidents as rows: one active per attempt, every change in the history, fenced by the lease."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError
from tests.support import verdicts as make

from hangwatch_server.db import captures, incidents, jobs, leases
from hangwatch_server.db.engine import Database
from hangwatch_server.db.leases import Lease
from hangwatch_server.errors import ConflictError, NotFoundError, StaleLeaseError
from hangwatch_server.model import IncidentState, Kind

pytestmark = [pytest.mark.integration, pytest.mark.anyio]

JOB = make.job().id


@pytest.fixture
async def lease(db: Database) -> Lease:
    await jobs.save(db, make.job(), "run-1", {})
    lease = await leases.claim(db, JOB, "server-a", 60)
    assert lease is not None
    return lease


async def test_open_incident_is_hidden_and_holds_its_verdict(db: Database, lease: Lease) -> None:
    incident = await incidents.open_incident(db, lease, make.verdict(), "no progress for 10 s")

    assert incident.state is IncidentState.OPEN
    assert incident.verdict.incident == incident.id
    assert incident.culprit_nodes == ("node-b",)
    assert [(event.old, event.new, event.why) for event in incident.history] == [
        ("", "open", "no progress for 10 s")
    ]
    assert (await incidents.list_page(db))[0] == []


async def test_captures_since_the_stall_began_become_the_incidents(
    db: Database, lease: Lease
) -> None:
    """The first are asked for before the suspicion; older ones belong to nothing."""
    verdict = make.verdict()
    for name, before_s in (("old", 60.0), ("first", 2.0)):
        at = verdict.since - timedelta(seconds=before_s)
        await captures.create(db, replace(make.capture(name), requested_at=at))

    incident = await incidents.open_incident(db, lease, verdict)
    await captures.create(db, replace(make.capture("late"), requested_at=verdict.since))
    confirmed = await incidents.confirm(db, lease, incident.id, verdict)

    assert incident.captures == ("first",)
    assert confirmed.captures == ("first", "late")


async def test_incident_of_a_job_that_is_not_seen_any_more_is_abandoned(
    db: Database, lease: Lease
) -> None:
    incident = await incidents.open_incident(db, lease, make.verdict())
    age_s = (datetime.now(UTC) - make.job().last_seen).total_seconds()

    assert await incidents.abandoned(db, age_s + 3600) == []
    assert [item.id for item in await incidents.abandoned(db, age_s - 3600)] == [incident.id]


async def test_second_active_incident_of_an_attempt_is_the_first_one(
    db: Database, lease: Lease
) -> None:
    opened = await asyncio.gather(
        *(incidents.open_incident(db, lease, make.verdict()) for _ in range(4))
    )

    assert len({incident.id for incident in opened}) == 1


async def test_index_refuses_two_active_incidents_of_one_attempt(
    db: Database, lease: Lease
) -> None:
    await incidents.open_incident(db, lease, make.verdict())

    with pytest.raises(IntegrityError, match="incidents_one_active"):
        async with db.begin() as connection:
            await connection.execute(
                text(
                    "INSERT INTO incidents SELECT 'other', job, job_name, attempt, 'confirmed', "
                    "kind, summary, culprit_ranks, culprit_nodes, opened_at, confirmed_at, "
                    "ended_at, end_reason, acknowledged_by, acknowledged_at, snoozed_until, "
                    "verdict FROM incidents"
                )
            )


async def test_confirmed_incident_is_listed_and_found_as_active(db: Database, lease: Lease) -> None:
    incident = await incidents.open_incident(db, lease, make.verdict())

    confirmed = await incidents.confirm(db, lease, incident.id, make.verdict())

    assert confirmed.state is IncidentState.CONFIRMED
    assert confirmed.confirmed_at is not None
    page, cursor = await incidents.list_page(db)
    assert ([found.id for found in page], cursor) == ([incident.id], None)
    assert await incidents.active(db, JOB, 2) is None
    active = await incidents.active(db, JOB, 1)
    assert active is not None
    assert active.id == incident.id


async def test_changed_culprits_are_one_line_in_the_history(db: Database, lease: Lease) -> None:
    incident = await incidents.open_incident(db, lease, make.verdict())

    await incidents.update(db, lease, incident.id, make.verdict(waiting="0-3"), "")
    changed = await incidents.update(
        db, lease, incident.id, make.verdict(culprits=(6,), node="node-c"), "culprits: 5 -> 6"
    )

    assert changed.culprit_ranks == "6"
    assert changed.culprit_nodes == ("node-c",)
    assert [event.why for event in changed.history[1:]] == ["culprits: 5 -> 6"]


async def test_ended_incident_frees_the_attempt_for_another(db: Database, lease: Lease) -> None:
    first = await incidents.open_incident(db, lease, make.verdict())
    await incidents.end(db, lease, first.id, IncidentState.PRUNED, "progress")

    second = await incidents.open_incident(db, lease, make.verdict())

    assert second.id != first.id
    newest = await incidents.newest(db, JOB, 1)
    assert newest is not None
    assert newest.id == second.id


async def test_recent_incident_is_reopened_with_its_history(db: Database, lease: Lease) -> None:
    first = await incidents.open_incident(db, lease, make.verdict())
    await incidents.confirm(db, lease, first.id, make.verdict())
    resolved = await incidents.end(db, lease, first.id, IncidentState.RESOLVED, "progress")
    recent = await incidents.recent(db, JOB, 1, 60)

    assert recent is not None
    again = await incidents.reopen(db, lease, recent.id, make.verdict())

    assert again.id == first.id
    assert again.ended_at is None
    assert again.confirmed_at == resolved.confirmed_at
    assert [event.new for event in again.history] == ["open", "confirmed", "resolved", "open"]
    assert await incidents.recent(db, JOB, 1, 60) is None


async def test_incident_cleared_long_ago_is_not_recent(db: Database, lease: Lease) -> None:
    incident = await incidents.open_incident(db, lease, make.verdict())
    await incidents.end(db, lease, incident.id, IncidentState.RESOLVED, "progress")

    assert await incidents.recent(db, JOB, 1, 0) is None


async def test_restarted_incident_is_never_recent(db: Database, lease: Lease) -> None:
    incident = await incidents.open_incident(db, lease, make.verdict())
    await incidents.end(db, lease, incident.id, IncidentState.ENDED, "restarted")

    assert await incidents.recent(db, JOB, 1, 60) is None


async def test_recorded_failure_is_over_and_visible(db: Database, lease: Lease) -> None:
    recorded = await incidents.record_failure(db, lease, make.verdict(kind=Kind.NONE))

    assert recorded.state is IncidentState.ENDED
    assert recorded.confirmed_at is None
    assert recorded.ended_at is not None
    assert [found.id for found in (await incidents.list_page(db))[0]] == [recorded.id]


async def test_writes_under_an_old_lease_change_nothing(db: Database, lease: Lease) -> None:
    incident = await incidents.open_incident(db, lease, make.verdict())
    await leases.claim(db, JOB, "server-a", 0)  # let it run out
    await leases.claim(db, JOB, "server-b", 60)

    for write in (
        incidents.open_incident(db, lease, make.verdict(attempt=2)),
        incidents.confirm(db, lease, incident.id, make.verdict()),
        incidents.update(db, lease, incident.id, make.verdict(), "late"),
        incidents.end(db, lease, incident.id, IncidentState.RESOLVED, "late"),
        incidents.record_failure(db, lease, make.verdict()),
    ):
        with pytest.raises(StaleLeaseError):
            await write

    assert await incidents.find(db, incident.id) == incident
    assert await incidents.active(db, JOB, 2) is None


async def test_change_that_the_state_does_not_allow_is_a_conflict(
    db: Database, lease: Lease
) -> None:
    incident = await incidents.open_incident(db, lease, make.verdict())
    await incidents.end(db, lease, incident.id, IncidentState.ENDED, "restarted")

    for write in (
        incidents.confirm(db, lease, incident.id, make.verdict()),
        incidents.end(db, lease, incident.id, IncidentState.RESOLVED, "progress"),
        incidents.reopen(db, lease, incident.id, make.verdict()),
        incidents.acknowledge(db, incident.id, "ann", ""),
    ):
        with pytest.raises(ConflictError, match="ended"):
            await write


async def test_unknown_incident_is_not_found(db: Database, lease: Lease) -> None:
    assert await incidents.find(db, "nothing") is None
    with pytest.raises(NotFoundError):
        await incidents.acknowledge(db, "nothing", "ann", "")


async def test_acknowledging_twice_is_one_line(db: Database, lease: Lease) -> None:
    incident = await incidents.open_incident(db, lease, make.verdict())

    first = await incidents.acknowledge(db, incident.id, "ann", "looking")
    again = await incidents.acknowledge(db, incident.id, "ann", "looking")

    assert first == again
    assert again.acknowledged_by == "ann"
    assert [(event.new, event.why, event.by) for event in again.history[1:]] == [
        ("acknowledged", "looking", "ann")
    ]


async def test_snooze_holds_its_end_and_its_author(db: Database, lease: Lease) -> None:
    incident = await incidents.open_incident(db, lease, make.verdict())
    until = datetime.now(UTC) + timedelta(hours=1)

    snoozed = await incidents.snooze(db, incident.id, "ann", until)

    assert snoozed.snoozed_until == until
    assert snoozed.history[-1].by == "ann"


async def test_pages_and_filters_of_incidents(db: Database, lease: Lease) -> None:
    ids = []
    for attempt in (1, 2, 3):
        verdict = make.verdict(attempt=attempt, node=f"node-{attempt}")
        incident = await incidents.open_incident(db, lease, verdict)
        await incidents.confirm(db, lease, incident.id, verdict)
        ids.append(incident.id)

    first, cursor = await incidents.list_page(db, limit=2)
    second, end = await incidents.list_page(db, limit=2, before=cursor)
    of_node, _ = await incidents.list_page(db, node="node-2")
    of_state, _ = await incidents.list_page(db, states=[IncidentState.OPEN])
    of_job, _ = await incidents.list_page(db, job="other")

    assert [incident.id for incident in first + second] == ids[::-1]
    assert end is None
    assert [incident.id for incident in of_node] == [ids[1]]
    assert of_state == of_job == []
    assert [incident.id for incident in await incidents.active_of_job(db, JOB)] == ids


async def test_ten_thousand_incidents_are_walked_page_by_page_each_once(
    db: Database, lease: Lease
) -> None:
    first = await incidents.open_incident(db, lease, make.verdict())
    await incidents.confirm(db, lease, first.id, make.verdict())
    async with db.begin() as connection:
        columns = [
            "job",
            "job_name",
            "kind",
            "summary",
            "culprit_ranks",
            "culprit_nodes",
            "verdict",
        ]
        copied = ", ".join(columns)
        # Many of the same second: the id then decides which comes first.
        await connection.execute(
            text(
                f"insert into incidents (id, attempt, state, opened_at, {copied}) "  # noqa: S608
                f"select 'copy-' || n, n, 'ended', opened_at - (n / 7) * interval '1 s', {copied} "
                "from incidents, generate_series(2, 10000) as n"
            )
        )

    seen: list[str] = []
    page, cursor = await incidents.list_page(db, limit=200)
    while cursor is not None:
        seen += [incident.id for incident in page]
        page, cursor = await incidents.list_page(db, limit=200, before=cursor)
    seen += [incident.id for incident in page]

    assert len(seen) == len(set(seen)) == 10_000
    assert await incidents.count_confirmed(db) == 1


async def test_incident_names_its_captures_in_order(db: Database, lease: Lease) -> None:
    incident = await incidents.open_incident(db, lease, make.verdict())
    for name in ("c2", "c1"):
        await captures.create(db, make.capture(name, incident=incident.id))

    found = await incidents.find(db, incident.id)

    assert found is not None
    assert found.captures == ("c1", "c2")
    assert [capture.id for capture in await captures.of_incident(db, incident.id)] == ["c1", "c2"]


async def test_list_finds_by_name_of_job_and_time(db: Database, lease: Lease) -> None:
    first = await incidents.open_incident(db, lease, make.verdict())
    await incidents.confirm(db, lease, first.id, make.verdict())
    later = first.opened_at + timedelta(seconds=1)

    for job, since, until, expected in (
        ("gpt-7b", None, None, [first.id]),
        (JOB, first.opened_at, later, [first.id]),
        ("gpt", None, None, []),
        (None, later, None, []),
        (None, None, first.opened_at, []),
    ):
        page, _ = await incidents.list_page(db, job=job, since=since, until=until)
        assert [incident.id for incident in page] == expected


async def test_the_last_incident_is_the_one_that_people_saw(db: Database, lease: Lease) -> None:
    assert await incidents.last_ended(db) is None
    seen = await incidents.open_incident(db, lease, make.verdict())
    await incidents.confirm(db, lease, seen.id, make.verdict())
    assert await incidents.count_confirmed(db) == 1

    await incidents.end(db, lease, seen.id, IncidentState.RESOLVED, "progress")
    hidden = await incidents.open_incident(db, lease, make.verdict(attempt=2))
    await incidents.end(db, lease, hidden.id, IncidentState.PRUNED, "progress")

    last = await incidents.last_ended(db)
    assert last is not None
    assert last.id == seen.id
    assert await incidents.count_confirmed(db) == 0
