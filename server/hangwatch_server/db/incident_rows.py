"""How an incident lies in its table: columns of a new one, and reading one back.

Statements and rows only; the questions and changes of others are in `incidents`.
"""

from __future__ import annotations

import dataclasses
import secrets
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, and_, func, select

from hangwatch_server.db import codec
from hangwatch_server.db.tables import captures, incidents
from hangwatch_server.model import ACTIVE_INCIDENTS, Incident, IncidentState, Kind, Verdict

MAX_CAPTURES = 500


def is_active() -> ColumnElement[bool]:
    return incidents.c.state.in_([state.value for state in ACTIVE_INCIDENTS])


def is_hidden() -> ColumnElement[bool]:
    never_shown = (IncidentState.OPEN.value, IncidentState.PRUNED.value)
    return and_(incidents.c.confirmed_at.is_(None), incidents.c.state.in_(never_shown))


def query() -> Select[Any]:  # Any: rows of many column types
    own = (
        select(captures.c.id)
        .where(captures.c.incident == incidents.c.id)
        .order_by(captures.c.requested_at, captures.c.id)
        .limit(MAX_CAPTURES)
    )
    return select(incidents, func.array(own.scalar_subquery()).label("capture_ids"))


def newest_first(statement: Select[Any]) -> Select[Any]:
    return statement.order_by(incidents.c.opened_at.desc(), incidents.c.id.desc())


def of_attempt(job: str, attempt: int) -> Select[Any]:
    own = and_(incidents.c.job == job, incidents.c.attempt == attempt)
    return newest_first(query().where(own)).limit(1)


def new(verdict: Verdict, state: IncidentState) -> dict[str, Any]:
    identifier = secrets.token_hex(6)
    return {
        "id": identifier,
        "job": verdict.job,
        "job_name": verdict.name,
        "attempt": verdict.attempt,
        "state": state.value,
        "opened_at": func.clock_timestamp(),
    } | columns(dataclasses.replace(verdict, incident=identifier))


def columns(verdict: Verdict) -> dict[str, Any]:
    nodes = {culprit.node for culprit in verdict.culprits if culprit.node}
    return {
        "kind": verdict.kind.value,
        "summary": verdict.summary,
        "culprit_ranks": verdict.culprit_ranks,
        "culprit_nodes": sorted(nodes),
        "verdict": verdict,
    }


def incident(row: Row[Any]) -> Incident:
    return Incident(
        id=row.id,
        job=row.job,
        job_name=row.job_name,
        attempt=row.attempt,
        state=IncidentState(row.state),
        kind=Kind(row.kind),
        summary=row.summary,
        culprit_ranks=row.culprit_ranks,
        culprit_nodes=tuple(row.culprit_nodes),
        opened_at=row.opened_at,
        confirmed_at=row.confirmed_at,
        ended_at=row.ended_at,
        end_reason=row.end_reason,
        acknowledged_by=row.acknowledged_by,
        acknowledged_at=row.acknowledged_at,
        snoozed_until=row.snoozed_until,
        verdict=codec.restore(row.verdict, Verdict),
        captures=tuple(row.capture_ids),
        is_snoozed_to_end=row.is_snoozed_to_end,
    )
