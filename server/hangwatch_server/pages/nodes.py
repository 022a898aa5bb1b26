"""Node pages: the agents, what each can see, and the incidents that had a culprit there."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from hangwatch_server.db import incidents as incident_rows
from hangwatch_server.errors import NotFoundError
from hangwatch_server.model import Link
from hangwatch_server.pages import access, headline, live, render, words
from hangwatch_server.pages.boundary import PageRoute
from hangwatch_server.services import Services

TOPICS = ("nodes",)
MAX_INCIDENTS = 20
MAX_JOBS = 20
_LINK_ORDER = {Link.LOST: 0, Link.LATE: 1, Link.LIVE: 2}
router = APIRouter(route_class=PageRoute, dependencies=[access.READ])


@router.get("/nodes")
async def list_nodes(request: Request, house: access.House) -> Response:
    return render.page(request, "nodes", await _list_values(request, house))


@router.get("/nodes/live")
async def list_live(request: Request, house: access.House) -> Response:
    return live.stream(request, house, TOPICS, "nodes", lambda page: _list_values(page, house))


@router.get("/nodes/{name}/live")
async def node_live(request: Request, house: access.House, name: str) -> Response:
    await house.watch.node(name)
    return live.stream(request, house, TOPICS, "node", lambda _: _values(house, name))


@router.get("/nodes/{name}")
async def node(request: Request, house: access.House, name: str) -> Response:
    return render.page(request, "node", await _values(house, name))


async def _list_values(request: Request, house: Services) -> render.Values:
    rows = await house.watch.nodes()
    silent = sum(row.link is not Link.LIVE for row in rows)
    return {
        "title": f"{f'◌ {silent} silent' if silent else 'Nodes'} · Hangwatch",
        "section": "nodes",
        "nodes": sorted(rows, key=lambda row: (_LINK_ORDER[row.link], row.name)),
        "silent": silent,
        "server_url": str(request.base_url).rstrip("/"),
    }


async def _values(house: Services, name: str) -> render.Values:
    row = await house.watch.node(name)
    incidents, _ = await incident_rows.list_page(house.db, node=name, limit=MAX_INCIDENTS)
    return {
        "title": f"{words.plain(words.short(row.name, 48))} · Hangwatch",
        "section": "nodes",
        "node": row,
        "jobs": [(job, await _job_name(house, job)) for job in row.jobs[:MAX_JOBS]],
        "incidents": incidents,
        "headings": {incident.id: headline.of_incident(incident) for incident in incidents},
    }


async def _job_name(house: Services, job_id: str) -> str:
    """A job's name, or its id once it is forgotten."""
    try:
        return (await house.watch.job(job_id)).name
    except NotFoundError:
        return job_id
