"""Jobs, attempts and verdicts as rows of a real Postgres."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest
from sqlalchemy import select
from tests.support import verdicts as make

from hangwatch_server.db import captures, codec, incidents, jobs, leases, tables, timelines
from hangwatch_server.db.engine import Database
from hangwatch_server.db.leases import Lease
from hangwatch_server.errors import BadCursorError, NotFoundError, StaleLeaseError
from hangwatch_server.model import State, TimelinePoint, Verdict

pytestmark = [pytest.mark.integration, pytest.mark.anyio]

ID = make.job().id


async def _lease(db: Database, job: str = ID) -> Lease:
    lease = await leases.claim(db, job, "server-a", 60)
    assert lease is not None
    return lease


async def test_job_comes_back_as_it_was_saved_but_not_live(db: Database) -> None:
    job = make.job()

    await jobs.save(db, job, "run-1", {})

    stored = await jobs.find(db, job.id)
    assert stored == dataclasses.replace(job, is_live=False, progress_age_s=None)


async def test_unknown_job_is_none(db: Database) -> None:
    assert await jobs.find(db, "nothing") is None
    assert await jobs.find_by_name(db, "nothing") is None
    assert await jobs.stored_attempt(db, "nothing") is None


async def test_job_found_by_name_is_the_newest(db: Database) -> None:
    await jobs.save(db, make.job("old"), "run-1", {})
    await jobs.save(db, make.job("new", first_seen=make.SINCE + timedelta(hours=1)), "run-2", {})

    found = await jobs.find_by_name(db, "gpt-7b")

    assert found is not None
    assert found.id == "new"


async def test_name_with_a_nul_character_is_stored(db: Database) -> None:
    await jobs.save(db, make.job(name="a\0b"), "run\0", {})

    stored = await jobs.find(db, ID)
    assert stored is not None
    assert stored.name == "a\ufffdb"


async def test_pages_of_jobs_hold_each_job_once_newest_first(db: Database) -> None:
    for number in range(5):
        seen = make.SINCE + timedelta(minutes=number // 2)
        await jobs.save(db, make.job(f"job-{number}", first_seen=seen), "run", {})

    seen_ids: list[str] = []
    cursor = None
    for _ in range(3):
        page, cursor = await jobs.list_page(db, limit=2, before=cursor)
        seen_ids += [job.id for job in page]

    assert cursor is None
    assert seen_ids == ["job-4", "job-3", "job-2", "job-1", "job-0"]


async def test_list_is_narrowed_by_state_and_by_text(db: Database) -> None:
    await jobs.save(db, make.job("a1", name="llama_8b", state=State.HUNG), "run", {})
    await jobs.save(db, make.job("b2", name="llamax8b"), "run", {})

    by_state, _ = await jobs.list_page(db, state=State.HUNG)
    by_text, _ = await jobs.list_page(db, query="MA_8")
    by_id, _ = await jobs.list_page(db, query="b2")

    assert [job.id for job in by_state] == ["a1"]
    assert [job.id for job in by_text] == ["a1"]
    assert [job.id for job in by_id] == ["b2"]


@pytest.mark.parametrize("cursor", ["x", "ä", "MjAyNg", "%%%", "a" * 500])
async def test_foreign_cursor_is_refused_in_words(db: Database, cursor: str) -> None:
    with pytest.raises(BadCursorError, match="is no cursor"):
        await jobs.list_page(db, before=cursor)


async def test_stored_attempt_is_the_newest_with_its_processes(db: Database) -> None:
    await jobs.save(db, make.job(attempt=1), "run", {0: ("node-a", 10, 100)})
    await jobs.save(db, make.job(attempt=2), "run", {0: ("node-a", 20, 200), 1: ("node-b", 7, 9)})

    stored = await jobs.stored_attempt(db, ID)

    assert stored is not None
    assert stored.attempt == 2
    assert stored.processes == {0: ("node-a", 20, 200), 1: ("node-b", 7, 9)}


async def test_verdict_index_rises_and_is_shared_by_all_jobs(db: Database) -> None:
    await jobs.save(db, make.job("a"), "run", {})
    await jobs.save(db, make.job("b"), "run", {})

    first = await jobs.save_verdict(db, make.verdict("a"), await _lease(db, "a"))
    second = await jobs.save_verdict(db, make.verdict("b"), await _lease(db, "b"))

    assert 0 < first.index < second.index
    stored = await jobs.find(db, "a")
    assert stored is not None
    assert stored.verdict == first
    assert stored.state is State.HUNG


async def test_late_save_of_the_job_keeps_the_newer_verdict(db: Database) -> None:
    await jobs.save(db, make.job(), "run", {})
    saved = await jobs.save_verdict(db, make.verdict(), await _lease(db))

    await jobs.save(db, make.job(), "run", {})

    stored = await jobs.find(db, ID)
    assert stored is not None
    assert stored.verdict == saved


async def history(db: Database) -> list[Verdict]:
    """The verdicts as they are kept, which nothing but retention reads."""
    kept = select(tables.verdicts.c.verdict).order_by(tables.verdicts.c.index)
    async with db.begin() as connection:
        rows = (await connection.execute(kept)).scalars().all()
    return [codec.restore(row, Verdict) for row in rows]


async def test_each_verdict_is_kept(db: Database) -> None:
    await jobs.save(db, make.job(), "run", {})
    lease = await _lease(db)
    saved = [
        await jobs.save_verdict(db, make.verdict(state=state), lease)
        for state in (State.SUSPECTED, State.HUNG, State.HEALTHY)
    ]

    assert await history(db) == saved


async def test_verdict_under_an_old_lease_writes_nothing(db: Database) -> None:
    await jobs.save(db, make.job(), "run", {})
    old = await leases.claim(db, ID, "server-a", 0)
    await leases.claim(db, ID, "server-b", 60)
    assert old is not None

    with pytest.raises(StaleLeaseError):
        await jobs.save_verdict(db, make.verdict(), old)

    assert await history(db) == []


async def test_verdict_of_a_job_that_is_not_stored_is_refused(db: Database) -> None:
    with pytest.raises(NotFoundError):
        await jobs.save_verdict(db, make.verdict("gone"), await _lease(db, "gone"))


async def test_deleting_a_job_takes_everything_of_it_along(db: Database) -> None:
    await jobs.save(db, make.job(), "run", {0: ("node-a", 1, 2)})
    lease = await _lease(db)
    await jobs.save_verdict(db, make.verdict(), lease)
    incident = await incidents.open_incident(db, lease, make.verdict())
    await captures.create(db, make.capture("c1", incident=incident.id))
    await captures.store_part(db, make.part("c1"), "node-b")

    assert await jobs.delete(db, ID)

    assert await jobs.find(db, ID) is None
    assert await incidents.find(db, incident.id) is None
    assert await captures.find(db, "c1") is None
    assert not await leases.renew(db, lease, 60)
    assert not await jobs.delete(db, ID)


async def test_list_leaves_out_ids_and_keeps_to_states(db: Database) -> None:
    for id, state in (("a", State.FINISHED), ("b", State.FAILED), ("c", State.HUNG)):
        await jobs.save(db, make.job(id, state=state), f"run-{id}", {})

    page, _ = await jobs.list_page(db, states=(State.FINISHED, State.FAILED), without=("b",))

    assert [job.id for job in page] == ["a"]


def _line(*rates: float) -> tuple[TimelinePoint, ...]:
    return tuple(
        TimelinePoint(
            ago_s=10.0 * (len(rates) - at), calls_per_s=rate, state=State.HEALTHY, phase="a\0b"
        )
        for at, rate in enumerate(rates)
    )


async def test_the_line_of_a_job_is_replaced_as_a_whole_and_grows_older(db: Database) -> None:
    await jobs.save(db, make.job(), "run-1", {})

    await timelines.save(db, ID, _line(1.0, 2.0, 3.0))
    await timelines.save(db, ID, _line(4.0, 5.0))

    found = await timelines.find(db, ID)
    assert [(point.calls_per_s, point.state, point.phase) for point in found] == [
        (4.0, State.HEALTHY, "a\ufffdb"),
        (5.0, State.HEALTHY, "a\ufffdb"),
    ]
    assert all(now.ago_s >= then.ago_s for now, then in zip(found, _line(4, 5), strict=True))


async def test_the_line_goes_with_its_job(db: Database) -> None:
    await jobs.save(db, make.job(), "run-1", {})
    await timelines.save(db, ID, _line(1.0))

    await jobs.delete(db, ID)

    assert await timelines.find(db, ID) == ()
    with pytest.raises(NotFoundError, match="not stored"):
        await timelines.save(db, ID, _line(1.0))
