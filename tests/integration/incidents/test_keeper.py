"""Incidents kept through a real Postgres, across the death of the server that opened them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from tests.support import verdicts as make

from hangwatch_server.db import incidents, jobs, leases
from hangwatch_server.db.engine import Database
from hangwatch_server.db.leases import Lease
from hangwatch_server.errors import StaleLeaseError
from hangwatch_server.incidents.keeper import Keeper
from hangwatch_server.model import Incident, IncidentState, Kind, State

pytestmark = [pytest.mark.integration, pytest.mark.anyio]

JOB = make.job().id


@dataclass(frozen=True)
class Said:
    state: State
    reason: str = "no progress for 15 s"
    is_over: bool = False


@pytest.fixture
async def lease(db: Database) -> Lease:
    await jobs.save(db, make.job(), "run-1", {})
    lease = await leases.claim(db, JOB, "server-a", 60)
    assert lease is not None
    return lease


async def follow(keeper: Keeper, lease: Lease, *states: State, attempt: int = 1) -> Incident | None:
    incident = None
    for state in states:
        verdict = make.verdict(state=state, attempt=attempt)
        incident = await keeper.apply(lease, JOB, Said(state), verdict)
    return incident


async def all_of(db: Database) -> list[Incident]:
    return (await incidents.list_page(db, states=list(IncidentState)))[0]


async def test_hang_from_suspicion_to_progress_is_one_incident(db: Database, lease: Lease) -> None:
    keeper = Keeper(db)

    hung = await follow(keeper, lease, State.HEALTHY, State.SUSPECTED, State.HUNG, State.HUNG)
    cleared = await follow(keeper, lease, State.HEALTHY, State.HEALTHY)

    assert hung is not None
    assert hung.state is IncidentState.CONFIRMED
    assert cleared is None
    found = await incidents.find(db, hung.id)
    assert found is not None
    assert [event.new for event in found.history] == ["open", "confirmed", "resolved"]
    assert len(await all_of(db)) == 1


async def test_same_stall_soon_after_is_the_same_incident(db: Database, lease: Lease) -> None:
    keeper = Keeper(db)

    first = await follow(keeper, lease, State.HUNG)
    again = await follow(keeper, lease, State.HEALTHY, State.SUSPECTED, State.HUNG)

    assert first is not None
    assert again is not None
    assert again.id == first.id
    assert again.state is IncidentState.CONFIRMED


async def test_server_that_takes_over_picks_the_incident_up(db: Database, lease: Lease) -> None:
    before = await follow(Keeper(db), lease, State.SUSPECTED, State.HUNG)
    await leases.release(db, lease)
    successor = await leases.claim(db, JOB, "server-b", 60)
    assert successor is not None

    after = await follow(
        Keeper(db), successor, State.UNKNOWN, State.STARTING, State.SUSPECTED, State.HUNG
    )

    assert before is not None
    assert after is not None
    assert after.id == before.id
    assert after.state is IncidentState.CONFIRMED
    assert len(await all_of(db)) == 1


async def test_server_that_was_replaced_writes_nothing(db: Database, lease: Lease) -> None:
    keeper = Keeper(db)
    hung = await follow(keeper, lease, State.HUNG)
    await leases.release(db, lease)
    await leases.claim(db, JOB, "server-b", 60)

    with pytest.raises(StaleLeaseError):
        await follow(keeper, lease, State.HEALTHY)

    assert hung is not None
    assert await incidents.find(db, hung.id) == hung


async def test_restart_ends_the_incident_and_a_new_hang_is_a_new_one(
    db: Database, lease: Lease
) -> None:
    keeper = Keeper(db)
    first = await follow(keeper, lease, State.SUSPECTED)

    second = await follow(keeper, lease, State.STARTING, State.SUSPECTED, attempt=2)

    assert first is not None
    assert second is not None
    ended = await incidents.find(db, first.id)
    assert ended is not None
    assert (ended.state, ended.end_reason) == (
        IncidentState.ENDED,
        "restarted as attempt 2",
    )
    assert [incident.id for incident in (await incidents.list_page(db))[0]] == [first.id]
    assert second.id != first.id


async def test_failure_is_recorded_once_and_named(db: Database, lease: Lease) -> None:
    verdict = make.verdict(state=State.FAILED, kind=Kind.NONE, waiting="")

    first = await Keeper(db).apply(lease, JOB, Said(State.FAILED), verdict)
    again = await Keeper(db).apply(lease, JOB, Said(State.FAILED), verdict)

    assert first is not None
    assert again is not None
    assert first.id == again.id
    assert first.state is IncidentState.ENDED
    assert len(await all_of(db)) == 1


async def test_replaced_attempt_leaves_one_record_whatever_was_known_of_it(
    db: Database, lease: Lease
) -> None:
    last = make.verdict(state=State.FAILED, kind=Kind.NONE, waiting="")
    keeper = Keeper(db)

    unseen = await keeper.close(lease, last, 2)
    again = await keeper.close(lease, last, 2)

    assert (unseen.state, unseen.end_reason) == (IncidentState.ENDED, "restarted as attempt 2")
    assert unseen.summary == last.summary
    assert again.id == unseen.id
    assert len(await all_of(db)) == 1


async def test_record_of_a_failure_says_later_that_the_job_was_started_again(
    db: Database, lease: Lease
) -> None:
    last = make.verdict(state=State.FAILED, kind=Kind.NONE, waiting="")
    recorded = await Keeper(db).apply(lease, JOB, Said(State.FAILED), last)

    closed = await Keeper(db).close(lease, last, 2)

    assert recorded is not None
    assert (closed.id, closed.end_reason) == (recorded.id, "restarted as attempt 2")


async def test_hidden_failure_that_a_restart_mends_is_never_confirmed(
    db: Database, lease: Lease
) -> None:
    keeper = Keeper(db)
    hidden = await follow(keeper, lease, State.FAILED)

    closed = await keeper.close(lease, make.verdict(state=State.FAILED), 2)

    assert hidden is not None
    assert (closed.id, closed.state) == (hidden.id, IncidentState.ENDED)
    assert closed.confirmed_at is None
    assert closed.end_reason == "restarted as attempt 2"


async def test_failure_that_no_restart_mends_is_confirmed_and_over(
    db: Database, lease: Lease
) -> None:
    keeper = Keeper(db)
    hidden = await follow(keeper, lease, State.FAILED)

    verdict = make.verdict(state=State.FAILED)
    over = await keeper.apply(lease, JOB, Said(State.FAILED, is_over=True), verdict)

    assert hidden is not None
    assert over is not None
    assert (over.id, over.state, over.end_reason) == (
        hidden.id,
        IncidentState.ENDED,
        "job failed",
    )
    assert over.confirmed_at is not None


async def test_job_that_is_forgotten_is_read_again(db: Database, lease: Lease) -> None:
    keeper = Keeper(db)
    await follow(keeper, lease, State.HUNG)
    await jobs.delete(db, JOB)
    await jobs.save(db, make.job(), "run-1", {})
    fresh = await leases.claim(db, JOB, "server-a", 60)
    assert fresh is not None
    keeper.forget(JOB)

    hung = await follow(keeper, fresh, State.HUNG)

    assert hung is not None
    assert [incident.id for incident in await all_of(db)] == [hung.id]
