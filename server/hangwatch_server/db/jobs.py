"""Jobs, their attempts and the history of their verdicts, as rows. Live facts stay on the board."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import Row, Select, case, func, or_, select, text, update
from sqlalchemy import delete as delete_from
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from hangwatch_agent import wire
from hangwatch_server import patterns
from hangwatch_server.db import codec, leases, paging
from hangwatch_server.db.engine import Database
from hangwatch_server.db.leases import Lease
from hangwatch_server.db.tables import attempts, jobs, verdict_index, verdicts
from hangwatch_server.db.tables import leases as lease_rows
from hangwatch_server.errors import NotFoundError
from hangwatch_server.model import Job, State, Verdict
from hangwatch_server.model.outbox import SeenJob

Process = tuple[str, int, int]  # node, pid, start ticks


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAttempt:
    """The newest attempt that was saved: how a restarted server knows whom it saw before."""

    attempt: int
    processes: dict[int, Process]


async def save(
    db: Database,
    job: Job,
    launch: str,
    processes: Mapping[int, Process],
    lease: Lease | None = None,
) -> None:
    """Insert or refresh a job. A verdict older than the stored one does not replace it.

    Raises StaleLeaseError where a lease is given that is no longer the newest.
    """
    async with db.begin() as connection:
        await leases.check(connection, lease)
        await _upsert_job(connection, job, launch)
        if processes:
            await _upsert_attempt(connection, job, processes)


async def find(db: Database, job_id: str) -> Job | None:
    async with db.begin() as connection:
        row = (await connection.execute(select(jobs).where(jobs.c.id == job_id))).first()
    return None if row is None else _job(row)


async def find_by_name(db: Database, name: str) -> Job | None:
    """The newest job of that name."""
    statement = (
        select(jobs)
        .where(jobs.c.name == name)
        .order_by(jobs.c.first_seen.desc(), jobs.c.id.desc())
        .limit(1)
    )
    async with db.begin() as connection:
        row = (await connection.execute(statement)).first()
    return None if row is None else _job(row)


async def list_page(
    db: Database,
    *,
    state: State | None = None,
    states: Collection[State] = (),
    query: str = "",
    limit: int = 50,
    before: str | None = None,
    without: Collection[str] = (),
    names: str = "",
) -> tuple[list[Job], str | None]:
    """Jobs, newest first, whose name holds `query` or whose id begins so; next cursor or None.

    Of one `state`, or of any of `states`; `without` are ids to leave out, and `names` is a pattern
    of the whole name.
    """
    size = paging.bounded(limit)
    statement = select(jobs).order_by(jobs.c.first_seen.desc(), jobs.c.id.desc()).limit(size + 1)
    if state is not None:
        statement = statement.where(jobs.c.state == state.value)
    if states:
        statement = statement.where(jobs.c.state.in_([one.value for one in states]))
    if without:
        statement = statement.where(jobs.c.id.not_in(without))
    if names:
        statement = statement.where(jobs.c.name.like(patterns.sql(names)))
    if query:
        statement = statement.where(
            or_(
                jobs.c.name.icontains(query, autoescape=True),
                jobs.c.id.startswith(query, autoescape=True),
            )
        )
    if before is not None:
        statement = statement.where(paging.is_before(jobs.c.first_seen, jobs.c.id, before))
    async with db.begin() as connection:
        rows = (await connection.execute(statement)).all()
    page = [_job(row) for row in rows[:size]]
    is_last = len(rows) <= size
    return page, None if is_last else paging.cursor(page[-1].first_seen, page[-1].id)


async def slow(db: Database, *, heard_within_s: float) -> list[Job]:
    """Jobs that a straggler holds up now; the newest heard first."""
    statement = _unfinished(select(jobs), heard_within_s).where(jobs.c.state == State.SLOW.value)
    async with db.begin() as connection:
        return [_job(row) for row in (await connection.execute(statement)).all()]


async def several(db: Database, job_ids: Collection[str]) -> list[Job]:
    """Those of these that are known."""
    statement = select(jobs).where(jobs.c.id.in_(job_ids)).limit(paging.MAX_LIMIT)
    async with db.begin() as connection:
        return [_job(row) for row in (await connection.execute(statement)).all()]


async def seen(db: Database, *, heard_within_s: float) -> list[SeenJob]:
    """Jobs that run, or ran when they were last heard of, without their verdicts."""
    columns = (jobs.c.id, jobs.c.name, jobs.c.state, jobs.c.reporting, jobs.c.world_size)
    async with db.begin() as connection:
        rows = (await connection.execute(_unfinished(select(*columns), heard_within_s))).all()
    return [
        SeenJob(
            id=row.id,
            name=row.name,
            state=State(row.state),
            reporting=row.reporting,
            world_size=row.world_size,
        )
        for row in rows
    ]


def _unfinished(statement: Select[Any], heard_within_s: float) -> Select[Any]:
    return (
        statement.where(
            text("jobs.state NOT IN ('finished', 'failed')"),  # as the index has it
            jobs.c.last_seen > func.now() - timedelta(seconds=heard_within_s),
        )
        .order_by(jobs.c.last_seen.desc(), jobs.c.id)
        .limit(paging.MAX_LIMIT)
    )


async def stored_attempt(db: Database, job_id: str) -> StoredAttempt | None:
    statement = (
        select(attempts.c.attempt, attempts.c.processes)
        .where(attempts.c.job == job_id)
        .order_by(attempts.c.attempt.desc())
        .limit(1)
    )
    async with db.begin() as connection:
        row = (await connection.execute(statement)).first()
    if row is None:
        return None
    return StoredAttempt(
        attempt=row.attempt, processes=codec.restore(row.processes, dict[int, Process])
    )


async def save_verdict(db: Database, verdict: Verdict, lease: Lease) -> Verdict:
    """Make this the job's newest verdict, under the next index; the job must have been saved.

    Raises StaleLeaseError, and NotFoundError when the job is not, or no longer, stored.
    """
    async with db.begin() as connection:
        await leases.check(connection, lease)
        old_state = await _lock_state(connection, verdict.job)
        index = (await connection.execute(select(verdict_index.next_value()))).scalar_one()
        indexed = dataclasses.replace(verdict, index=index)
        await connection.execute(
            insert(verdicts).values(
                index=index,
                job=verdict.job,
                attempt=verdict.attempt,
                old_state=old_state,
                new_state=verdict.state.value,
                verdict=indexed,
            )
        )
        await connection.execute(
            update(jobs)
            .where(jobs.c.id == verdict.job)
            .values(state=verdict.state.value, verdict=indexed, verdict_index=index)
        )
    return indexed


async def verdict_indexes(db: Database, job_ids: Collection[str]) -> dict[str, int]:
    """The index of the newest verdict of each of these jobs that is stored."""
    statement = select(jobs.c.id, jobs.c.verdict_index).where(jobs.c.id.in_(job_ids))
    async with db.begin() as connection:
        return {row.id: row.verdict_index for row in await connection.execute(statement)}


async def verdicts_of(db: Database, job_ids: Collection[str]) -> list[Verdict]:
    """The newest verdicts of these jobs."""
    if not job_ids:
        return []
    statement = select(jobs.c.verdict).where(jobs.c.id.in_(job_ids))
    async with db.begin() as connection:
        found = await connection.execute(statement)
        return [codec.restore(row.verdict, Verdict) for row in found]


async def delete(db: Database, job_id: str) -> bool:
    """Delete a job with its verdicts, incidents and captures; False when it was not there."""
    async with db.begin() as connection:
        await connection.execute(delete_from(lease_rows).where(lease_rows.c.job == job_id))
        result = await connection.execute(delete_from(jobs).where(jobs.c.id == job_id))
        return result.rowcount == 1


async def _upsert_job(connection: AsyncConnection, job: Job, launch: str) -> None:
    new = insert(jobs).values(
        id=job.id,
        launch=launch,
        name=job.name,
        attempt=job.attempt,
        world_size=job.world_size,
        reporting=job.reporting,
        state=job.state.value,
        verdict=job.verdict,
        verdict_index=job.verdict.index,
        nodes=list(job.nodes),
        depth=job.depth.value,
        script=job.script,
        step=job.step,
        first_seen=job.first_seen,
        last_seen=job.last_seen,
    )
    kept = ("id", "first_seen")
    changes: dict[str, Any] = {  # SQL expressions of many types
        column.name: column for column in new.excluded if column.name not in kept
    }
    is_newer = new.excluded.verdict_index >= jobs.c.verdict_index
    for name in ("state", "verdict", "verdict_index"):
        changes[name] = case((is_newer, new.excluded[name]), else_=jobs.c[name])
    await connection.execute(new.on_conflict_do_update(index_elements=[jobs.c.id], set_=changes))


async def _upsert_attempt(
    connection: AsyncConnection, job: Job, processes: Mapping[int, Process]
) -> None:
    new = insert(attempts).values(job=job.id, attempt=job.attempt, processes=dict(processes))
    # Saved often, changed rarely: an unchanged row is not written again.
    await connection.execute(
        new.on_conflict_do_update(
            index_elements=[attempts.c.job, attempts.c.attempt],
            set_={"processes": new.excluded.processes},
            where=attempts.c.processes.is_distinct_from(new.excluded.processes),
        )
    )


async def _lock_state(connection: AsyncConnection, job_id: str) -> str:
    """The job's stored state; its row is held, so that indexes rise in the order they are seen."""
    statement = select(jobs.c.state).where(jobs.c.id == job_id).with_for_update()
    state = (await connection.execute(statement)).scalar_one_or_none()
    if state is None:
        raise NotFoundError(f"job {job_id} is not stored: it was deleted, or never saved")
    return str(state)


def _job(row: Row[Any]) -> Job:  # Any: a row of many column types
    return Job(
        id=row.id,
        name=row.name,
        attempt=row.attempt,
        world_size=row.world_size,
        reporting=row.reporting,
        state=State(row.state),
        verdict=codec.restore(row.verdict, Verdict),
        nodes=tuple(row.nodes),
        depth=wire.Depth(row.depth),
        first_seen=row.first_seen,
        last_seen=row.last_seen,
        progress_age_s=None,
        script=row.script,
        step=row.step,
        is_live=False,
    )
