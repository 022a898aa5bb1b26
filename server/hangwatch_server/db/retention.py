"""Deletes what is older than the retention settings. Active incidents and all of theirs stay."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Delete, and_, delete, exists, func, or_, select

from hangwatch_server.db.engine import Database
from hangwatch_server.db.incident_rows import is_active
from hangwatch_server.db.tables import (
    audit,
    blind_spells,
    captures,
    deliveries,
    incidents,
    jobs,
    nodes,
    silences,
    verdicts,
)
from hangwatch_server.model import IncidentState
from hangwatch_server.model.alerts import Repeat


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """How many rows went."""

    jobs: int
    incidents: int
    captures: int
    verdicts: int
    nodes: int
    audit: int
    deliveries: int  # that are about no incident: the others go with theirs
    silences: int
    blind_spells: int


async def prune(
    db: Database, *, older_than_days: float, hidden_older_than_days: float = 1.0
) -> Pruned:
    """Delete old rows in one transaction; suspicions that came to nothing go sooner."""
    old, hidden = _ago(older_than_days), _ago(hidden_older_than_days)
    is_hidden = and_(
        incidents.c.state == IncidentState.PRUNED.value, incidents.c.confirmed_at.is_(None)
    )
    has_active = exists(select(incidents.c.id).where(incidents.c.job == jobs.c.id, is_active()))
    # In this order a capture whose incident goes has no incident any more when its turn comes.
    statements: dict[str, Delete] = {
        "jobs": delete(jobs).where(jobs.c.last_seen < old, ~has_active),
        "incidents": delete(incidents).where(
            or_(incidents.c.ended_at < old, and_(is_hidden, incidents.c.ended_at < hidden))
        ),
        "captures": delete(captures).where(
            captures.c.requested_at < old, captures.c.incident.is_(None)
        ),
        "verdicts": delete(verdicts).where(verdicts.c.at < old),
        "nodes": delete(nodes).where(nodes.c.last_seen < old),
        "audit": delete(audit).where(audit.c.at < old),
        "deliveries": delete(deliveries).where(
            deliveries.c.created_at < old, deliveries.c.incident.is_(None)
        ),
        "silences": delete(silences).where(
            or_(
                silences.c.cancelled_at < old,
                and_(silences.c.repeat == Repeat.ONCE.value, silences.c.ends_at < old),
            )
        ),
        "blind_spells": delete(blind_spells).where(blind_spells.c.ended_at < old),
    }
    async with db.begin() as connection:
        counts = {
            name: (await connection.execute(statement)).rowcount
            for name, statement in statements.items()
        }
    return Pruned(**counts)


def _ago(days: float) -> ColumnElement[datetime]:
    return func.now() - timedelta(days=days)
