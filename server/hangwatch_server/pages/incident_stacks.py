"""The stacks of an incident on a page of their own: where messages lead, to a stack and a rank."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from hangwatch_server import wiring
from hangwatch_server.db import incidents as incident_rows
from hangwatch_server.errors import NotFoundError
from hangwatch_server.model import Incident
from hangwatch_server.pages import headline, render, stack_view, words
from hangwatch_server.pages.boundary import PageRoute
from hangwatch_server.services import Services

router = APIRouter(route_class=PageRoute, dependencies=[wiring.READ])


@router.get("/incidents/{incident_id}/stacks")
async def stacks(
    request: Request, house: wiring.House, chosen: stack_view.Chosen, incident_id: str
) -> Response:
    incident = await _find(house, incident_id)
    tree = await house.captures.incident_tree(incident_id, native=chosen.native)
    heading = words.plain(headline.of_incident(incident))
    values = {
        "title": f"Stacks: {heading} · Hangwatch",
        "section": "incidents",
        "incident": incident,
        "heading": heading,
        "stacks": stack_view.of(
            tree,
            request,
            chosen,
            base=f"/incidents/{incident_id}",
            culprits=incident.verdict.culprit_ranks,
        ),
    }
    return render.page(request, "incident_stacks", values)


@router.get("/incidents/{incident_id}/branches")
async def branches(
    request: Request, house: wiring.House, chosen: stack_view.Chosen, incident_id: str
) -> Response:
    incident = await _find(house, incident_id)
    tree = await house.captures.incident_tree(incident_id, native=chosen.native)
    return stack_view.more(
        tree,
        request,
        chosen,
        base=f"/incidents/{incident_id}",
        culprits=incident.verdict.culprit_ranks,
    )


async def _find(house: Services, incident_id: str) -> Incident:
    found = await incident_rows.find(house.db, incident_id)
    if found is None:
        raise NotFoundError(f"Incident '{words.short(incident_id, 40)}' is not known.")
    return found
