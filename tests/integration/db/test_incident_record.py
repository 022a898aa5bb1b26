"""What is kept beside an incident: comments, snoozes, moments, and its stacks."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta

import pytest
from tests.support import verdicts as make
from tests.web import moments as made

from hangwatch_agent import wire
from hangwatch_server.db import captures, incidents, jobs, leases, moments, stacks
from hangwatch_server.db.engine import Database
from hangwatch_server.errors import ConflictError, NotFoundError
from hangwatch_server.model import CaptureState, Incident, IncidentState

pytestmark = [pytest.mark.integration, pytest.mark.anyio]

JOB = make.job().id
NEVER = datetime(2099, 1, 1, tzinfo=UTC)


@pytest.fixture
async def incident(db: Database) -> Incident:
    await jobs.save(db, make.job(), "run-1", {})
    lease = await leases.claim(db, JOB, "server-1", 60)
    assert lease is not None
    return await incidents.open_incident(db, lease, make.verdict(JOB))


async def _end(db: Database, incident: Incident) -> None:
    lease = await leases.claim(db, JOB, "server-1", 60)
    assert lease is not None
    await incidents.end(db, lease, incident.id, IncidentState.ENDED, "job failed")


async def _captured(db: Database, incident: Incident, name: str, after_s: int, *ranks: int) -> None:
    at = make.SINCE + timedelta(seconds=after_s)
    capture = dataclasses.replace(make.capture(name, incident=incident.id), requested_at=at)
    await captures.create(db, capture)
    for rank in ranks:
        await captures.store_part(db, make.part(name, rank, function=f"{name}_{rank}"), "node-b")


def _function(held: tuple[wire.ProcessStacks, ...]) -> str:
    return held[0].threads[0].frames[0].name


async def test_comments_come_back_in_order_also_after_the_end(
    db: Database, incident: Incident
) -> None:
    await incidents.comment(db, incident.id, "ada", "looking")
    await _end(db, incident)
    changed = await incidents.comment(db, incident.id, "bob", "disk was full\0")

    assert [(said.by, said.text) for said in changed.comments] == [
        ("ada", "looking"),
        ("bob", "disk was full\ufffd"),
    ]
    assert changed.comments[0].at <= changed.comments[1].at


async def test_an_unknown_incident_takes_no_comment(db: Database) -> None:
    with pytest.raises(NotFoundError):
        await incidents.comment(db, "nothing", "ada", "hello")


async def test_comments_have_a_limit(
    db: Database, incident: Incident, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hangwatch_server.db.comments.MAX_COMMENTS", 2)
    for text in ("one", "two"):
        await incidents.comment(db, incident.id, "ada", text)

    with pytest.raises(ConflictError, match="2 comments"):
        await incidents.comment(db, incident.id, "ada", "three")


async def test_a_snooze_to_the_end_is_told_from_one_with_a_time(
    db: Database, incident: Incident
) -> None:
    until_end = await incidents.snooze(db, incident.id, "ada", NEVER, to_end=True)
    until_time = await incidents.snooze(db, incident.id, "ada", NEVER)

    assert (until_end.is_snoozed_to_end, until_time.is_snoozed_to_end) == (True, False)
    assert until_end.history[-1].why.startswith("until the job ends")


async def test_a_moment_comes_back_as_it_was(db: Database, incident: Incident) -> None:
    moment = made.of_hung()

    await moments.add(db, incident.id, moment)

    assert await moments.newest(db, incident.id) == moment
    assert await moments.of_incident(db, incident.id) == (moment,)


async def test_of_many_moments_the_first_and_the_newest_stay(
    db: Database, incident: Incident
) -> None:
    for number in range(moments.MAX_MOMENTS + 3):
        await moments.add(db, incident.id, made.moment(why=f"change {number}"))

    kept = [moment.why for moment in await moments.of_incident(db, incident.id)]

    assert len(kept) == moments.MAX_MOMENTS
    assert (kept[0], kept[-1]) == ("change 0", f"change {moments.MAX_MOMENTS + 2}")


async def test_a_deleted_incident_takes_no_moment(db: Database) -> None:
    with pytest.raises(NotFoundError):
        await moments.add(db, "nothing", made.moment())


async def test_each_ranks_newest_stacks_come_whichever_capture_they_are_of(
    db: Database, incident: Incident
) -> None:
    await _captured(db, incident, "c1", 1, 5, 6)
    await _captured(db, incident, "c2", 2, 5)
    await _captured(db, incident, "c3", 3, 5)
    await captures.create(db, make.capture("other"))
    await captures.store_part(db, make.part("other"), "node-b")

    newest = await stacks.newest_of_incident(db, incident.id)

    assert [(rank, _function(held)) for rank, held in newest] == [(5, "c3_5"), (6, "c1_6")]


async def test_the_stamp_of_its_stacks_tells_of_each_part_that_came(
    db: Database, incident: Incident
) -> None:
    stamps = [await stacks.stamp_of_incident(db, incident.id)]
    await captures.create(db, make.capture("c1", incident=incident.id))

    for part in (make.empty_part("c1"), make.part("c1"), make.part("c1", 6), make.part("c1", 6)):
        await captures.store_part(db, part, "node-b")
        stamps.append(await stacks.stamp_of_incident(db, incident.id))

    assert stamps[0] == (0, None)
    assert [stamp[0] for stamp in stamps] == [0, 1, 1, 2, 2]
    assert len(set(stamps)) == 4  # the last one repeated a part, and changed nothing


async def test_a_summary_counts_what_came_and_what_did_not(
    db: Database, incident: Incident
) -> None:
    await _captured(db, incident, "c1", 1, 5)
    await captures.store_part(db, make.empty_part("c1", rank=6), "node-b")
    entries = wire.GroupEntries(gid="g", entries=(wire.Entry(seq=1, op="x", is_retired=True),))
    recorded = dataclasses.replace(make.capture("c2", incident=incident.id), kinds=("recorder",))
    await captures.create(db, recorded)
    part = wire.CapturePart(
        capture="c2", launch="run-1", rank=5, pid=812, age_s=0.1, entries=(entries,)
    )
    await captures.store_part(db, part, "node-b")
    await captures.finish(db, "c1", CaptureState.PARTIAL)
    await _captured(db, incident, "c9", 9)

    found = {row.id: row for row in await captures.summaries(db, incident.id)}

    assert (found["c1"].stacks, found["c1"].entries, found["c1"].missing) == (1, 0, 1)
    assert (found["c2"].stacks, found["c2"].entries, found["c2"].missing) == (0, 1, 0)
    assert (found["c9"].stacks, found["c9"].missing, found["c9"].stored_at) == (0, 0, None)


async def test_parts_come_page_by_page(db: Database, incident: Incident) -> None:
    await _captured(db, incident, "c1", 1, 3, 5, 8)

    first = await captures.parts_page(db, "c1", limit=2)
    rest = await captures.parts_page(db, "c1", after=first[-1].part.rank, limit=2)

    assert [held.part.rank for held in (*first, *rest)] == [3, 5, 8]
