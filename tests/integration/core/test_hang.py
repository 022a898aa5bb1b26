"""A hang told by synthetic agents becomes a verdict, an incident and stored evidence."""

from __future__ import annotations

import pytest
from tests.integration.core import house, synthetic
from tests.integration.core.house import House
from tests.integration.core.waiting import until

from hangwatch_server.board.base import job_id
from hangwatch_server.db import captures as capture_rows
from hangwatch_server.db import incidents as incident_rows
from hangwatch_server.db import jobs as job_rows
from hangwatch_server.model import CaptureState, Incident, IncidentState, Kind, State, Verdict

pytestmark = [pytest.mark.integration, pytest.mark.anyio]
JOB = job_id(synthetic.KEY)
SPEED = 10.0


async def hang(server: House, job: synthetic.Job) -> Verdict:
    """The verdict on the job's four ranks once they stand still."""
    watch = server.services.watch
    await until(lambda: watch.job(JOB), lambda found: found.reporting == 4)
    job.stall()
    return await until(lambda: watch.verdict(JOB), lambda verdict: verdict.state is State.HUNG)


async def incident_at_its_end(server: House, hung: Verdict) -> Incident:
    found = await until(
        lambda: incident_rows.find(server.services.db, hung.incident or ""),
        lambda found: found is not None and found.ended_at is not None,
    )
    assert found is not None
    return found


async def test_hung_job_is_suspected_then_hung_with_incident_and_stored_captures(
    database_url: str,
) -> None:
    async with house.open_house(database_url, SPEED) as server:
        job = synthetic.Job(server.clock.monotonic_s)
        watch, url = server.services.watch, server.url
        token_a, token_b = await server.token("node-a"), await server.token("node-b")
        async with (
            synthetic.agent(url, token_a, "node-a", job, (0, 1)) as first,
            synthetic.agent(url, token_b, "node-b", job, (2, 3)) as second,
        ):
            for _ in range(3):
                job.progress()
                await until(lambda: watch.job(JOB), lambda found: found.reporting == 4)
            job.stall()
            suspected = await until(
                lambda: watch.verdict(JOB),
                lambda verdict: verdict.state in (State.SUSPECTED, State.HUNG),
            )
            hung = await until(
                lambda: watch.verdict(JOB, index=suspected.index, wait_s=60),
                lambda verdict: verdict.state is State.HUNG and verdict.action.evidence_stored,
            )

            incident = await incident_rows.find(server.services.db, hung.incident or "")
            held = await watch.hold(JOB, 30)
            page, _ = await watch.jobs()
            linked = await capture_rows.of_incident(server.services.db, hung.incident or "")
            earliest = linked[0].requested_at
            tree = await server.services.captures.tree(linked[0].id)

    assert suspected.incident is not None
    assert (hung.kind, hung.culprit_ranks, hung.waiting) == (Kind.MISSING_RANKS, "2", "0-1,3")
    assert hung.index > 0
    assert hung.culprits[0].where == "train.py:88 in prepare"
    assert incident is not None
    assert incident.state is IncidentState.CONFIRMED
    assert earliest < incident.opened_at  # what was captured before the suspicion is linked
    assert held.evidence_stored
    assert [item.state for item in page] == [State.HUNG]
    assert tree.classes
    assert first.commands or second.commands
    assert {stored.rank for stored in second.stored} >= {2}


async def test_progress_after_a_hang_resolves_the_incident(database_url: str) -> None:
    async with house.open_house(database_url, SPEED) as server:
        job = synthetic.Job(server.clock.monotonic_s, odd_op="broadcast")
        watch = server.services.watch
        token = await server.token("node-a")
        async with synthetic.agent(server.url, token, "node-a", job, range(4)):
            await until(lambda: watch.job(JOB), lambda found: found.reporting == 4)
            job.stall()
            hung = await until(
                lambda: watch.verdict(JOB), lambda verdict: verdict.incident is not None
            )
            job.progress()
            calm = await until(
                lambda: watch.verdict(JOB), lambda verdict: verdict.state is State.HEALTHY
            )
            active = await incident_rows.active(server.services.db, JOB, 1)

    assert hung.kind is Kind.MISMATCH
    assert calm.incident is None
    assert calm.index > hung.index
    assert active is None


async def test_incident_ends_when_its_nodes_do_not_come_back(database_url: str) -> None:
    changes = {"abandon_after_s": 1.0, "forget_after_s": 30.0}
    async with house.open_house(database_url, SPEED, **changes) as server:
        job = synthetic.Job(server.clock.monotonic_s, odd_op="broadcast")
        token = await server.token("node-a")
        async with synthetic.agent(server.url, token, "node-a", job, range(4)):
            hung = await hang(server, job)
        ended = await incident_at_its_end(server, hung)

    assert (ended.state, ended.end_reason) == (IncidentState.ENDED, "job not seen any more")


async def test_hung_job_that_was_killed_for_no_known_reason_ends_its_incident(
    database_url: str,
) -> None:
    """As when its user gives up on it: that is no failure of its own, and nobody waits any more."""
    async with house.open_house(database_url, SPEED) as server:
        job = synthetic.Job(server.clock.monotonic_s, odd_op="broadcast")
        watch = server.services.watch
        token = await server.token("node-a")
        async with synthetic.agent(server.url, token, "node-a", job, range(4)):
            hung = await hang(server, job)
            job.processes_gone = set(range(4))
            incident = await incident_at_its_end(server, hung)
            over = await until(
                lambda: watch.verdict(JOB), lambda verdict: verdict.summary.startswith("The job")
            )

    assert (incident.state, incident.end_reason) == (IncidentState.ENDED, "job ended")
    assert incident.culprit_ranks == "2"
    assert (over.state, over.incident, over.culprit_ranks) == (State.UNKNOWN, hung.incident, "2")
    assert "nobody knows why. Before that: Rank 2 (node-a" in over.summary


async def test_restarted_job_is_the_same_job_attempt_two_and_ends_the_incident(
    database_url: str,
) -> None:
    async with house.open_house(database_url, SPEED) as server:
        job = synthetic.Job(server.clock.monotonic_s, odd_op="broadcast")
        watch = server.services.watch
        token = await server.token("node-a")
        async with synthetic.agent(server.url, token, "node-a", job, range(4)):
            await until(lambda: watch.job(JOB), lambda found: found.reporting == 4)
            job.stall()
            hung = await until(
                lambda: watch.verdict(JOB), lambda verdict: verdict.incident is not None
            )
            job.progress()
            job.start_ticks, job.restart = 900, 1
            again = await until(lambda: watch.job(JOB), lambda found: found.attempt == 2)
            incident = await until(
                lambda: incident_rows.find(server.services.db, hung.incident or ""),
                lambda found: found is not None and found.state is IncidentState.ENDED,
            )
            stored = await until(
                lambda: job_rows.stored_attempt(server.services.db, JOB),
                lambda found: found is not None and found.attempt == 2,
            )

    assert again.verdict.incident is None
    assert incident is not None
    assert incident.end_reason == "restarted as attempt 2"
    assert stored is not None
    assert len(stored.processes) == 4


async def test_capture_of_a_node_that_went_away_is_partial_with_a_reason_for_each_rank(
    database_url: str,
) -> None:
    async with house.open_house(database_url, SPEED) as server:
        job = synthetic.Job(server.clock.monotonic_s)
        services = server.services
        token_a, token_b = await server.token("node-a"), await server.token("node-b")
        async with synthetic.agent(server.url, token_a, "node-a", job, (0, 1)):
            async with synthetic.agent(server.url, token_b, "node-b", job, (2, 3)):
                await until(lambda: services.watch.job(JOB), lambda found: found.reporting == 4)
            await until(lambda: services.watch.node("node-b"), lambda node: node.link != "live")
            asked = await services.captures.request(
                JOB, ranks="0-3", kinds=["stacks"], native=False, by="tester"
            )
            capture = await services.captures.wait(asked.id, 90)
            text = await services.captures.text(asked.id)

    assert capture.state is CaptureState.PARTIAL
    assert [part.rank for part in capture.parts] == [0, 1, 2, 3]
    assert [part.has_stacks for part in capture.parts] == [True, True, False, False]
    assert all("not connected" in part.reason for part in capture.parts[2:])
    assert "node-b" in text


async def test_long_poll_answers_at_once_for_an_index_that_is_not_the_present_one(
    database_url: str,
) -> None:
    async with house.open_house(database_url, SPEED) as server:
        job = synthetic.Job(server.clock.monotonic_s)
        watch = server.services.watch
        token = await server.token("node-a")
        async with synthetic.agent(server.url, token, "node-a", job, range(4)):
            now = await until(lambda: watch.verdict(JOB), lambda verdict: verdict.index > 0)

            future = await watch.verdict(JOB, index=now.index + 1000, wait_s=120)
            past = await watch.verdict(JOB, index=0, wait_s=120)

    assert future.index >= now.index
    assert past.index >= now.index


async def test_attempt_that_is_replaced_before_anybody_saw_it_end_leaves_a_record(
    database_url: str,
) -> None:
    async with house.open_house(database_url, SPEED) as server:
        job = synthetic.Job(server.clock.monotonic_s)
        db, watch = server.services.db, server.services.watch
        token = await server.token("node-a")
        async with synthetic.agent(server.url, token, "node-a", job, range(4)):
            await until(lambda: watch.job(JOB), lambda found: found.reporting == 4)
            job.start_ticks, job.restart = 900, 1
            await until(lambda: watch.job(JOB), lambda found: found.attempt == 2)
            shown = await until(
                lambda: incident_rows.list_page(db, job=JOB), lambda page: bool(page[0])
            )

    (incident,) = shown[0]
    assert (incident.attempt, incident.state) == (1, IncidentState.ENDED)
    assert incident.end_reason == "restarted as attempt 2"
    assert incident.summary == "Nobody saw attempt 1 end; restarted as attempt 2."
    assert incident.confirmed_at is None
