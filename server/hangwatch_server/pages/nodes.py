"""Node pages: the agents, what each can see, what runs there, and what their nodes have cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Query, Request, Response

from hangwatch_server import wiring
from hangwatch_server.db import incidents as incident_rows
from hangwatch_server.errors import NotFoundError
from hangwatch_server.model import ACTIVE_INCIDENTS, SHOWN_INCIDENTS, Link, NodeRow, RankRow
from hangwatch_server.pages import headline, live, render, words
from hangwatch_server.pages.boundary import PageRoute
from hangwatch_server.services import Services

TOPICS = ("nodes",)
PAGE_NODES = 100
MAX_INCIDENTS = 20
MAX_JOBS = 20
MAX_RANKS = 64  # of one job on the page of a node
SHOWN_SKEW_S = 1.0
_LINK_ORDER = {Link.LOST: 0, Link.LATE: 1, Link.LIVE: 2}
router = APIRouter(route_class=PageRoute, dependencies=[wiring.READ])


class Order(StrEnum):
    """What stands first in the list of nodes."""

    SILENT = ""
    INCIDENTS = "incidents"
    LOST = "lost"


ORDERS = {Order.SILENT: "silent first", Order.INCIDENTS: "incidents", Order.LOST: "GPU hours lost"}
Sort = Annotated[Order, Query()]
Page = Annotated[int, Query(ge=1, le=100_000)]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeJob:
    """A job with ranks on the node."""

    id: str
    name: str
    ranks: tuple[RankRow, ...]
    more: int  # ranks that are not listed


@router.get("/nodes")
async def list_nodes(
    request: Request, house: wiring.House, sort: Sort = Order.SILENT, page: Page = 1
) -> Response:
    return render.page(request, "nodes", await _list_values(request, house, sort, page))


@router.get("/nodes/live", dependencies=[wiring.STREAM_PLACE])
async def list_live(
    request: Request, house: wiring.House, sort: Sort = Order.SILENT, page: Page = 1
) -> Response:
    return live.stream(
        request, house, TOPICS, "nodes", lambda asked: _list_values(asked, house, sort, page)
    )


@router.get("/nodes/{name:path}/live", dependencies=[wiring.STREAM_PLACE])
async def node_live(request: Request, house: wiring.House, name: str) -> Response:
    await house.watch.node(name)
    return live.stream(request, house, TOPICS, "node", lambda _: _values(house, name))


@router.get("/nodes/{name:path}")
async def node(request: Request, house: wiring.House, name: str) -> Response:
    return render.page(request, "node", await _values(house, name))


async def _list_values(request: Request, house: Services, sort: Order, page: int) -> render.Values:
    rows = await house.watch.nodes()
    silent = sum(row.link is not Link.LIVE for row in rows)
    start = (page - 1) * PAGE_NODES
    prefix = f"sort={sort.value}&" if sort.value else ""
    has_more = start + PAGE_NODES < len(rows)
    return {
        "title": f"{f'◌ {silent} silent' if silent else 'Nodes'} · Hangwatch",
        "section": "nodes",
        "as_json": "/api/v1/nodes",
        "nodes": _ordered(rows, sort)[start : start + PAGE_NODES],
        "total": len(rows),
        "silent": silent,
        "worst": _worst(rows),
        "sort": sort,
        "orders": ORDERS,
        "before": f"/nodes?{prefix}page={page - 1}" if page > 1 else "",
        "after": f"/nodes?{prefix}page={page + 1}" if has_more else "",
        "shown_skew_s": SHOWN_SKEW_S,
        "server_url": str(request.base_url).rstrip("/"),
    }


def _ordered(rows: Sequence[NodeRow], sort: Order) -> list[NodeRow]:
    def place(row: NodeRow) -> tuple[float, float, str]:
        if sort is Order.INCIDENTS:
            return -row.incidents_30d, -row.gpu_hours_lost_30d, row.name
        if sort is Order.LOST:
            return -row.gpu_hours_lost_30d, -row.incidents_30d, row.name
        return _LINK_ORDER[row.link], 0.0, row.name

    return sorted(rows, key=place)


def _worst(rows: Sequence[NodeRow]) -> NodeRow | None:
    """The node with most incidents, where one has had more than one."""
    found = max(rows, key=lambda row: (row.incidents_30d, row.gpu_hours_lost_30d), default=None)
    return found if found is not None and found.incidents_30d > 1 else None


async def _values(house: Services, name: str) -> render.Values:
    row = await house.watch.node(name)
    incidents, more = await incident_rows.list_page(
        house.db, states=SHOWN_INCIDENTS, node=name, limit=MAX_INCIDENTS
    )
    return {
        "title": f"{words.plain(words.short(row.name, 48))} · Hangwatch",
        "section": "nodes",
        "as_json": f"/api/v1/nodes/{quote(row.name, safe='')}",
        "node": row,
        "jobs": [await _job(house, job, name) for job in row.jobs[:MAX_JOBS]],
        "incidents": incidents,
        "more_incidents": more is not None,
        "headings": {incident.id: headline.of_incident(incident) for incident in incidents},
        "calls": {incident.id: headline.beside(incident) for incident in incidents},
        "is_active": {row.id: row.state in ACTIVE_INCIDENTS for row in incidents},
        "shown_skew_s": SHOWN_SKEW_S,
    }


async def _job(house: Services, job_id: str, node: str) -> NodeJob:
    """A job by its name, or its id once it is forgotten, with its ranks on this node."""
    try:
        name = (await house.watch.job(job_id)).name
        ranks = [row for row in await house.watch.ranks(job_id) if row.node == node]
    except NotFoundError:
        return NodeJob(id=job_id, name=job_id, ranks=(), more=0)
    return NodeJob(
        id=job_id, name=name, ranks=tuple(ranks[:MAX_RANKS]), more=max(0, len(ranks) - MAX_RANKS)
    )
