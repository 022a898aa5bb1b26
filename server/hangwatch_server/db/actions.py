"""The operator's commands as rows: a row is written before its command runs, and once per incident.

So a command runs at most once whatever happens: two servers race for the row's primary key, and a
server that dies leaves a row that nobody runs again. Every change is also a line in the incident's
history.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, exists, func, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from hangwatch_server.db import incident_rows
from hangwatch_server.db.engine import Database
from hangwatch_server.db.tables import actions, incident_events, incidents
from hangwatch_server.model import Incident, IncidentState
from hangwatch_server.model.actions import ActionRun, ActionState

# Any number, the same in all servers: their counts of the last hour must not overlap.
_LOCK = 0x68616E67
MAX_CANDIDATES = 50
CANDIDATES_FOR = timedelta(hours=1)  # confirmed longer ago, a hang is no news to act on
_COUNTED = [state.value for state in ActionState if state is not ActionState.HELD_BACK]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How often commands may run, over all jobs and for one."""

    per_hour: int
    per_job_per_hour: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The right to write the end of one command: lost when another server declares it lost."""

    incident: str
    secret: str
    state: ActionState


async def candidates(db: Database, settle_s: float) -> list[Incident]:
    """Confirmed incidents that stood for so long, whom nobody looks after, without a command."""
    stood = incidents.c.confirmed_at <= func.now() - timedelta(seconds=settle_s)
    is_news = incidents.c.confirmed_at > func.now() - CANDIDATES_FOR
    has_none = ~exists(select(actions.c.incident).where(actions.c.incident == incidents.c.id))
    statement = (
        incident_rows.query()
        .where(_is_unattended(), stood, is_news, has_none)
        .order_by(incidents.c.confirmed_at)
        .limit(MAX_CANDIDATES)
    )
    async with db.begin() as connection:
        return [incident_rows.incident(row) for row in (await connection.execute(statement)).all()]


async def claim(
    db: Database,
    incident: Incident,
    command: Sequence[str],
    limits: Limits,
    *,
    for_s: float,
    is_dry_run: bool,
) -> Claim | None:
    """Write the row of a command that is about to run; None when it must not any more.

    The claim's state says what became of it: to run now, a dry run, or held back by a limit.
    """
    async with db.begin() as connection:
        await connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))
        still = select(incidents.c.id).where(incidents.c.id == incident.id, _is_unattended())
        if (await connection.execute(still.with_for_update())).first() is None:
            return None
        taken = select(actions.c.incident).where(actions.c.incident == incident.id)
        if (await connection.execute(taken)).first() is not None:
            return None
        refusal = await _refusal(connection, incident.job, limits)
        state, why = ActionState.RUNNING, "the incident stands, and nobody looks after it"
        if refusal:
            state, why = ActionState.HELD_BACK, refusal
        elif is_dry_run:
            state, why = ActionState.DRY_RUN, "would run; --action-dry-run is set"
        made = Claim(incident=incident.id, secret=secrets.token_hex(8), state=state)
        await _insert(connection, made, incident, command, why, for_s)
        return made


async def finish(
    db: Database, done: Claim, state: ActionState, exit_code: int | None, output: str, why: str
) -> bool:
    """Write how the command ended; False when another server has declared it lost meanwhile."""
    statement = (
        update(actions)
        .where(
            actions.c.incident == done.incident,
            actions.c.claim == done.secret,
            actions.c.state == ActionState.RUNNING.value,
        )
        .values(
            state=state.value, ended_at=func.clock_timestamp(), exit_code=exit_code, output=output
        )
    )
    async with db.begin() as connection:
        if (await connection.execute(statement)).rowcount != 1:
            return False
        await _log(connection, done.incident, state, why)
        return True


async def declare_lost(db: Database) -> list[str]:
    """Incidents whose command's server is gone; whoever calls this first writes it down."""
    statement = (
        update(actions)
        .where(
            actions.c.state == ActionState.RUNNING.value,
            actions.c.claimed_until < func.clock_timestamp(),
        )
        .values(state=ActionState.LOST.value, ended_at=func.clock_timestamp())
        .returning(actions.c.incident)
    )
    async with db.begin() as connection:
        found = list((await connection.execute(statement)).scalars())
        for incident in found:
            why = "the server ended while it ran: how it went is not known, it is not run again"
            await _log(connection, incident, ActionState.LOST, why)
    return found


async def find(db: Database, incident: str) -> ActionRun | None:
    """The command of an incident, if it got one."""
    async with db.begin() as connection:
        row = (
            await connection.execute(select(actions).where(actions.c.incident == incident))
        ).first()
    return None if row is None else _run(row)


def _is_unattended() -> ColumnElement[bool]:
    is_silent = incidents.c.snoozed_until > func.now()
    return and_(
        incidents.c.state == IncidentState.CONFIRMED.value,
        incidents.c.acknowledged_by == "",
        or_(incidents.c.snoozed_until.is_(None), ~is_silent),
    )


async def _refusal(connection: AsyncConnection, job: str, limits: Limits) -> str:
    """The limit that the last hour has used up, in words; "" when none."""
    recent = and_(
        actions.c.begun_at > func.clock_timestamp() - timedelta(hours=1),
        actions.c.state.in_(_COUNTED),
    )
    own = func.count().filter(actions.c.job == job)
    statement = select(func.count(), own).select_from(actions).where(recent)
    in_all, of_job = (await connection.execute(statement)).one()
    if of_job >= limits.per_job_per_hour:
        return f"this job has had {of_job} in the last hour (--action-per-job-per-hour)"
    if in_all >= limits.per_hour:
        return f"there were {in_all} in the last hour (--action-per-hour)"
    return ""


async def _insert(
    connection: AsyncConnection,
    made: Claim,
    incident: Incident,
    command: Sequence[str],
    why: str,
    for_s: float,
) -> None:
    is_running = made.state is ActionState.RUNNING
    now = func.clock_timestamp()
    await connection.execute(
        insert(actions).values(
            incident=incident.id,
            job=incident.job,
            state=made.state.value,
            command=list(command),
            why=why,
            begun_at=now,
            ended_at=None if is_running else now,
            claim=made.secret,
            claimed_until=now + timedelta(seconds=for_s) if is_running else None,
        )
    )
    await _log(connection, incident.id, made.state, f"{' '.join(command)}: {why}")


async def _log(connection: AsyncConnection, incident: str, state: ActionState, why: str) -> None:
    await connection.execute(
        insert(incident_events).values(
            incident=incident,
            at=func.clock_timestamp(),
            old=IncidentState.CONFIRMED.value,
            new=f"action_{state.value}",
            why=why,
            by="",
        )
    )


def _run(row: Row[Any]) -> ActionRun:
    return ActionRun(
        incident=row.incident,
        job=row.job,
        state=ActionState(row.state),
        command=tuple(row.command),
        why=row.why,
        begun_at=row.begun_at,
        ended_at=row.ended_at,
        exit_code=row.exit_code,
        output=row.output,
    )
