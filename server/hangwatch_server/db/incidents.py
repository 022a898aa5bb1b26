"""Incidents and their history as rows. What should happen to one, `incidents.lifecycle` decides.

Every change is one row in the history (old, new, when, why, who). Changes that detection makes
carry the job's lease; what people do (acknowledge, snooze) does not.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, and_, func, insert, not_, or_, select, true
from sqlalchemy import update as change_rows
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from hangwatch_server import patterns
from hangwatch_server.db import comments, incident_rows, leases, paging
from hangwatch_server.db.engine import Database
from hangwatch_server.db.leases import Lease
from hangwatch_server.db.tables import captures, incident_events, incidents, jobs
from hangwatch_server.errors import ConflictError, NotFoundError
from hangwatch_server.model import (
    ACTIVE_INCIDENTS,
    JOB_FAILED,
    Incident,
    IncidentEvent,
    IncidentState,
    Verdict,
)

MAX_HISTORY = 500


async def open_incident(db: Database, lease: Lease, verdict: Verdict, why: str = "") -> Incident:
    """Open a hidden incident; if the attempt already has an active one, that one is returned."""
    async with db.begin() as connection:
        await leases.check(connection, lease)
        incident = incident_rows.new(verdict, IncidentState.OPEN)
        statement = upsert(incidents).values(**incident).on_conflict_do_nothing()
        if (await connection.execute(statement.returning(incidents.c.id))).first() is None:
            there = await _active(connection, verdict.job, verdict.attempt)
            if there is not None:
                return there
            raise ConflictError(f"no incident could be opened for job {verdict.job}: try again")
        await _adopt_captures(connection, verdict, incident["id"])
        await _log(connection, incident["id"], "", IncidentState.OPEN, why or verdict.summary)
        return await _need(connection, incident["id"])


async def record_failure(
    db: Database, lease: Lease, verdict: Verdict, why: str = "", reason: str = JOB_FAILED
) -> Incident:
    """Write an incident that is over already: the job failed and left nobody waiting, or was
    started again before anything else was known."""
    async with db.begin() as connection:
        await leases.check(connection, lease)
        incident = incident_rows.new(verdict, IncidentState.ENDED)
        await connection.execute(
            insert(incidents).values(**incident, ended_at=func.clock_timestamp(), end_reason=reason)
        )
        await _log(connection, incident["id"], "", IncidentState.ENDED, why or reason)
        return await _need(connection, incident["id"])


async def confirm(
    db: Database, lease: Lease, incident_id: str, verdict: Verdict, why: str = ""
) -> Incident:
    """An open incident becomes visible and alerts; the time of its first confirmation is kept."""
    changes = {
        "state": IncidentState.CONFIRMED.value,
        "confirmed_at": func.coalesce(incidents.c.confirmed_at, func.clock_timestamp()),
    }
    return await _change(
        db, lease, incident_id, (IncidentState.OPEN,), changes, why or verdict.summary, verdict
    )


async def update(
    db: Database, lease: Lease, incident_id: str, verdict: Verdict, why: str
) -> Incident:
    """Store a newer verdict of an active incident; an empty `why` writes no line of history."""
    return await _change(db, lease, incident_id, ACTIVE_INCIDENTS, {}, why, verdict)


async def end(
    db: Database, lease: Lease, incident_id: str, state: IncidentState, reason: str
) -> Incident:
    """Close an active incident as resolved, ended or pruned."""
    changes = {"state": state.value, "ended_at": func.clock_timestamp(), "end_reason": reason}
    return await _change(db, lease, incident_id, ACTIVE_INCIDENTS, changes, reason, None)


async def explain(db: Database, lease: Lease, incident_id: str, reason: str) -> Incident:
    """Say better why an incident ended, once more is known."""
    changes = {"end_reason": reason}
    allowed = (IncidentState.ENDED,)
    return await _change(db, lease, incident_id, allowed, changes, reason, None)


async def reopen(
    db: Database, lease: Lease, incident_id: str, verdict: Verdict, why: str = ""
) -> Incident:
    """A resolved or pruned incident is open again; raise ConflictError if another is active."""
    changes = {
        "state": IncidentState.OPEN.value,
        "ended_at": None,
        "end_reason": "",
        "told_at": None,
    }
    closed = (IncidentState.RESOLVED, IncidentState.PRUNED)
    reason = why or "the same stall came back"
    return await _change(db, lease, incident_id, closed, changes, reason, verdict)


async def active(db: Database, job: str, attempt: int) -> Incident | None:
    async with db.begin() as connection:
        return await _active(connection, job, attempt)


async def abandoned(db: Database, after_s: float) -> list[Incident]:
    """Active incidents of jobs that nothing was heard of for so long, oldest first."""
    is_silent = jobs.c.last_seen < func.now() - timedelta(seconds=after_s)
    statement = (
        incident_rows.query()
        .join(jobs, jobs.c.id == incidents.c.job)
        .where(incident_rows.is_active(), is_silent)
        .order_by(incidents.c.opened_at)
        .limit(paging.MAX_LIMIT)
    )
    async with db.begin() as connection:
        return [incident_rows.incident(row) for row in (await connection.execute(statement)).all()]


async def active_of_job(db: Database, job: str) -> list[Incident]:
    """Active incidents of all attempts, oldest first: more than one only after a restart."""
    statement = (
        incident_rows.query()
        .where(incidents.c.job == job, incident_rows.is_active())
        .order_by(incidents.c.attempt)
        .limit(paging.MAX_LIMIT)
    )
    async with db.begin() as connection:
        return [incident_rows.incident(row) for row in (await connection.execute(statement)).all()]


async def recent(db: Database, job: str, attempt: int, within_s: float) -> Incident | None:
    """The incident of this attempt that progress cleared last, if within so many seconds."""
    since = func.clock_timestamp() - timedelta(seconds=within_s)
    cleared = (IncidentState.RESOLVED.value, IncidentState.PRUNED.value)
    statement = (
        incident_rows.of_attempt(job, attempt)
        .where(incidents.c.state.in_(cleared), incidents.c.ended_at >= since)
        .order_by(None)
        .order_by(incidents.c.ended_at.desc())
    )
    async with db.begin() as connection:
        row = (await connection.execute(statement)).first()
    return None if row is None else incident_rows.incident(row)


async def newest(db: Database, job: str, attempt: int) -> Incident | None:
    """The incident of this attempt that was opened last, in whatever state."""
    async with db.begin() as connection:
        row = (await connection.execute(incident_rows.of_attempt(job, attempt))).first()
    return None if row is None else incident_rows.incident(row)


async def find(db: Database, incident_id: str) -> Incident | None:
    """One incident with its history."""
    async with db.begin() as connection:
        return await _find(connection, incident_id)


async def several(db: Database, incident_ids: Collection[str]) -> dict[str, Incident]:
    """These incidents by id, without history; at most as many as a page holds are asked for."""
    statement = incident_rows.query().where(incidents.c.id.in_(incident_ids))
    async with db.begin() as connection:
        rows = (await connection.execute(statement)).all()
    return {row.id: incident_rows.incident(row) for row in rows}


async def list_page(
    db: Database,
    *,
    states: Collection[IncidentState] | None = None,
    job: str | None = None,
    node: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = 50,
    before: str | None = None,
    names: str = "",
) -> tuple[list[Incident], str | None]:
    """Incidents, newest first, without history; next cursor or None.

    Without `states`, hidden ones are left out: suspicions that were never confirmed. `job` is an id
    or a whole name, `names` a pattern of it; opened at or after `since`, and before `until`.
    """
    size = paging.bounded(limit)
    statement = incident_rows.newest_first(incident_rows.query()).limit(size + 1)
    if states is None:
        statement = statement.where(not_(incident_rows.is_hidden()))
    else:
        statement = statement.where(incidents.c.state.in_([state.value for state in states]))
    if job is not None:
        statement = statement.where(or_(incidents.c.job == job, incidents.c.job_name == job))
    if names:
        statement = statement.where(_is_named(names))
    if node is not None:
        statement = statement.where(incidents.c.culprit_nodes.contains([node]))
    if since is not None:
        statement = statement.where(incidents.c.opened_at >= since)
    if until is not None:
        statement = statement.where(incidents.c.opened_at < until)
    if before is not None:
        statement = statement.where(paging.is_before(incidents.c.opened_at, incidents.c.id, before))
    async with db.begin() as connection:
        rows = (await connection.execute(statement)).all()
    page = [incident_rows.incident(row) for row in rows[:size]]
    is_last = len(rows) <= size
    return page, None if is_last else paging.cursor(page[-1].opened_at, page[-1].id)


async def count_confirmed(db: Database, names: str = "") -> int:
    """How many incidents are open for people now: confirmed, and not over."""
    is_confirmed = and_(
        incident_rows.is_active(), incidents.c.confirmed_at.is_not(None), _is_named(names)
    )
    statement = select(func.count()).select_from(incidents).where(is_confirmed)
    async with db.begin() as connection:
        return (await connection.execute(statement)).scalar_one()


async def last_ended(db: Database, names: str = "") -> Incident | None:
    """The incident, of those that people saw, which ended last."""
    statement = (
        incident_rows.query()
        .where(not_(incident_rows.is_hidden()), incidents.c.ended_at.is_not(None), _is_named(names))
        .order_by(incidents.c.ended_at.desc())
        .limit(1)
    )
    async with db.begin() as connection:
        row = (await connection.execute(statement)).first()
    return None if row is None else incident_rows.incident(row)


def _is_named(names: str) -> ColumnElement[bool]:
    """Whether the job's whole name fits a pattern, of which the empty one is any."""
    return incidents.c.job_name.like(patterns.sql(names)) if names else true()


async def acknowledge(db: Database, incident_id: str, by: str, comment: str) -> Incident:
    """Note that somebody has seen it; a repeat by the same person changes nothing."""
    async with db.begin() as connection:
        incident = await _need_active(connection, incident_id)
        if incident.acknowledged_by == by:
            return incident
        await connection.execute(
            change_rows(incidents)
            .where(incidents.c.id == incident_id)
            .values(acknowledged_by=by, acknowledged_at=func.clock_timestamp())
        )
        await _log(connection, incident_id, incident.state, "acknowledged", comment, by)
        return await _need(connection, incident_id)


async def snooze(
    db: Database, incident_id: str, by: str, until: datetime, *, to_end: bool = False
) -> Incident:
    """Be silent about it until then; with `to_end` until the job ends, if that is sooner."""
    async with db.begin() as connection:
        incident = await _need_active(connection, incident_id)
        await connection.execute(
            change_rows(incidents)
            .where(incidents.c.id == incident_id)
            .values(snoozed_until=until, is_snoozed_to_end=to_end)
        )
        latest = until.isoformat(timespec="seconds")
        why = f"until the job ends, {latest} at the latest" if to_end else f"until {latest}"
        await _log(connection, incident_id, incident.state, "snoozed", why, by)
        return await _need(connection, incident_id)


async def comment(db: Database, incident_id: str, by: str, text: str) -> Incident:
    """Add a note; one that is over takes notes too."""
    async with db.begin() as connection:
        await _locked_state(connection, incident_id)
        await comments.add(connection, incident_id, by, text)
        return await _need(connection, incident_id)


async def _change(
    db: Database,
    lease: Lease,
    incident_id: str,
    allowed: Collection[IncidentState],
    changes: dict[str, Any],  # SQL expressions of many types
    why: str,
    verdict: Verdict | None,
) -> Incident:
    """Apply `changes` if the incident is in an allowed state; ConflictError if it is not."""
    async with db.begin() as connection:
        await leases.check(connection, lease)
        old = await _locked_state(connection, incident_id)
        if old not in allowed:
            raise ConflictError(f"incident {incident_id} is {old} by now: load it again")
        if verdict is not None:
            changes = changes | incident_rows.columns(
                dataclasses.replace(verdict, incident=incident_id)
            )
            await _adopt_captures(connection, verdict, incident_id)
        await connection.execute(
            change_rows(incidents).where(incidents.c.id == incident_id).values(**changes)
        )
        if why:
            await _log(connection, incident_id, old, changes.get("state", old), why)
        return await _need(connection, incident_id)


async def _adopt_captures(connection: AsyncConnection, verdict: Verdict, incident_id: str) -> None:
    """Captures taken since the stall began are this incident's evidence too.

    The first ones are asked for before the suspicion. Both times are the server's own.
    """
    since = verdict.since - timedelta(seconds=verdict.stalled_s)
    await connection.execute(
        change_rows(captures)
        .where(
            captures.c.job == verdict.job,
            captures.c.attempt == verdict.attempt,
            captures.c.incident.is_(None),
            captures.c.requested_at >= since,
        )
        .values(incident=incident_id)
    )


async def _locked_state(connection: AsyncConnection, incident_id: str) -> IncidentState:
    statement = select(incidents.c.state).where(incidents.c.id == incident_id).with_for_update()
    state = (await connection.execute(statement)).scalar_one_or_none()
    if state is None:
        raise NotFoundError(f"there is no incident '{incident_id}'")
    return IncidentState(state)


async def _log(
    connection: AsyncConnection, incident_id: str, old: str, new: str, why: str, by: str = ""
) -> None:
    await connection.execute(
        insert(incident_events).values(
            incident=incident_id,
            at=func.clock_timestamp(),
            old=str(old),
            new=str(new),
            why=why,
            by=by,
        )
    )


async def _active(connection: AsyncConnection, job: str, attempt: int) -> Incident | None:
    row = (
        await connection.execute(
            incident_rows.of_attempt(job, attempt).where(incident_rows.is_active())
        )
    ).first()
    return None if row is None else incident_rows.incident(row)


async def _need_active(connection: AsyncConnection, incident_id: str) -> Incident:
    state = await _locked_state(connection, incident_id)
    if state not in ACTIVE_INCIDENTS:
        raise ConflictError(
            f"incident {incident_id} is over ({state}): there is nothing to silence"
        )
    return await _need(connection, incident_id)


async def _need(connection: AsyncConnection, incident_id: str) -> Incident:
    incident = await _find(connection, incident_id)
    if incident is None:
        raise NotFoundError(f"there is no incident '{incident_id}'")
    return incident


async def _find(connection: AsyncConnection, incident_id: str) -> Incident | None:
    row = (
        await connection.execute(incident_rows.query().where(incidents.c.id == incident_id))
    ).first()
    if row is None:
        return None
    events = (
        select(incident_events)
        .where(incident_events.c.incident == incident_id)
        .order_by(incident_events.c.id)
        .limit(MAX_HISTORY)
    )
    history = tuple(
        IncidentEvent(at=event.at, old=event.old, new=event.new, why=event.why, by=event.by)
        for event in (await connection.execute(events)).all()
    )
    said = await comments.of_incident(connection, incident_id)
    return dataclasses.replace(incident_rows.incident(row), history=history, comments=said)
