"""Nodes as last reported. Whether one is live now is the board's to say; from here it is lost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Row, select
from sqlalchemy.dialects.postgresql import insert

from hangwatch_agent import wire
from hangwatch_server.db.engine import Database
from hangwatch_server.db.tables import nodes
from hangwatch_server.model import Link, NodeHistory, NodeRow

MAX_NODES = 20_000


async def save(db: Database, rows: Iterable[NodeRow]) -> None:
    """Store nodes as they are now, all in one go: a cluster has thousands."""
    new = insert(nodes)
    changes = {column.name: column for column in new.excluded if column.name != "name"}
    statement = new.on_conflict_do_update(index_elements=[nodes.c.name], set_=changes)
    # Always in one order: two servers that save the same nodes must not wait for each other.
    values = [_values(row) for row in sorted(rows, key=lambda row: row.name)]
    if values:
        async with db.begin() as connection:
            await connection.execute(statement, values)


def _values(node: NodeRow) -> dict[str, object]:
    return {
        "name": node.name,
        "version": node.version,
        "ranks": node.ranks,
        "jobs": list(node.jobs),
        "stacks": node.stacks,
        "stacks_remedy": node.stacks_remedy,
        "depth": node.depth.value,
        "dropped": node.dropped,
        "last_seen": node.last_seen,
    }


async def list_all(db: Database, history: Mapping[str, NodeHistory]) -> list[NodeRow]:
    """All nodes ever seen, by name; `history` is what `node_history.by_node` said last."""
    statement = select(nodes).order_by(nodes.c.name).limit(MAX_NODES)
    async with db.begin() as connection:
        return [_node(row, history) for row in (await connection.execute(statement)).all()]


async def find(db: Database, name: str, history: Mapping[str, NodeHistory]) -> NodeRow | None:
    async with db.begin() as connection:
        row = (await connection.execute(select(nodes).where(nodes.c.name == name))).first()
    return None if row is None else _node(row, history)


def _node(row: Row[Any], history: Mapping[str, NodeHistory]) -> NodeRow:  # Any: many types
    own = history.get(row.name, NodeHistory())
    return NodeRow(
        name=row.name,
        link=Link.LOST,
        version=row.version,
        age_s=None,
        ranks=row.ranks,
        jobs=tuple(row.jobs),
        stacks=row.stacks,
        stacks_remedy=row.stacks_remedy,
        depth=wire.Depth(row.depth),
        incidents_30d=own.incidents,
        dropped=row.dropped,
        last_seen=row.last_seen,
        gpu_hours_lost_30d=own.gpu_hours_lost,
        last_incident_at=own.last_incident_at,
    )
