"""What the incidents of late say about nodes: how many each had a part in, and what they cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, select

from hangwatch_server import ranges
from hangwatch_server.db.engine import Database
from hangwatch_server.db.tables import incidents, jobs
from hangwatch_server.errors import BadRangeError
from hangwatch_server.model import NodeHistory

MAX_INCIDENTS = 20_000
MAX_NODES = 10_000
HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """One confirmed incident, as far as the nodes of its culprits are concerned."""

    job: str
    nodes: tuple[str, ...]  # of the culprits, each once
    waiting: str  # range text of the ranks that waited for them
    length_s: float
    opened_at: datetime


async def by_node(db: Database, days: float) -> dict[str, NodeHistory]:
    """The history of each node that had a culprit of a confirmed incident in these days.

    An incident lasts from its suspicion to its end, or to now; never past the moment its job was
    heard last, so that a job which is gone costs nothing. Its last verdict says who waited.
    """
    end = func.least(func.coalesce(incidents.c.ended_at, func.now()), jobs.c.last_seen)
    statement = (
        select(
            incidents.c.job,
            incidents.c.culprit_nodes,
            incidents.c.opened_at,
            incidents.c.verdict["waiting"].astext.label("waiting"),
            func.extract("epoch", end - incidents.c.opened_at).label("length_s"),
        )
        .join(jobs, jobs.c.id == incidents.c.job)
        .where(
            incidents.c.confirmed_at.is_not(None),
            incidents.c.opened_at >= func.now() - timedelta(days=days),
            func.cardinality(incidents.c.culprit_nodes) > 0,
        )
        .order_by(incidents.c.opened_at.desc(), incidents.c.id.desc())
        .limit(MAX_INCIDENTS)
    )
    async with db.begin() as connection:
        rows = (await connection.execute(statement)).all()
    return tally(
        Stall(
            job=row.job,
            nodes=tuple(row.culprit_nodes),
            waiting=row.waiting or "",
            length_s=max(0.0, float(row.length_s)),
            opened_at=row.opened_at,
        )
        for row in rows
    )


def tally(stalls: Iterable[Stall]) -> dict[str, NodeHistory]:
    """Add the stalls up by node, at most MAX_NODES of them, those with most incidents first.

    GPU hours lost = waiting ranks x length, a rank counting as one GPU; where several nodes had
    culprits, they share them in equal parts.
    """
    found: dict[str, NodeHistory] = {}
    jobs_by_node: dict[str, set[str]] = {}
    for stall in stalls:
        hours = _size(stall.waiting) * stall.length_s / HOUR_S / max(len(stall.nodes), 1)
        for node in stall.nodes:
            before = found.get(node, NodeHistory())
            jobs_by_node.setdefault(node, set()).add(stall.job)
            found[node] = NodeHistory(
                incidents=before.incidents + 1,
                jobs=len(jobs_by_node[node]),
                gpu_hours_lost=before.gpu_hours_lost + hours,
                last_incident_at=max(before.last_incident_at or stall.opened_at, stall.opened_at),
            )
    worst = sorted(found, key=lambda node: (-found[node].incidents, node))[:MAX_NODES]
    return {node: found[node] for node in worst}


def _size(waiting: str) -> int:
    """How many ranks waited; none for a text that an older version wrote otherwise."""
    try:
        return ranges.size(waiting)
    except BadRangeError:
        return 0
