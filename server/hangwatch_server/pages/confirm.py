"""The pages that links in alerts lead to: they ask once more before anything is done.

A link is opened by people, and by whatever looks at messages for previews: only the POST acts.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from hangwatch_server import wiring
from hangwatch_server.model import ACTIVE_INCIDENTS, Incident
from hangwatch_server.pages import headline, incidents, render
from hangwatch_server.pages.boundary import PageRoute

router = APIRouter(route_class=PageRoute, dependencies=[wiring.OPERATE])


@router.get("/incidents/{incident_id}/acknowledge")
async def ask_acknowledge(request: Request, house: wiring.House, incident_id: str) -> Response:
    found = await incidents.find(house, incident_id)
    return render.page(request, "incident_acknowledge", _values(found, "Acknowledge"))


@router.get("/incidents/{incident_id}/snooze")
async def ask_snooze(
    request: Request,
    house: wiring.House,
    incident_id: str,
    minutes: Annotated[int, Query(ge=1, le=24 * 60)] = 60,
) -> Response:
    found = await incidents.find(house, incident_id)
    values = {**_values(found, "Snooze"), "minutes": minutes}
    return render.page(request, "incident_snooze", values)


def _values(incident: Incident, what: str) -> render.Values:
    return {
        "title": f"{what} · Hangwatch",
        "section": "incidents",
        "incident": incident,
        "heading": headline.of_incident(incident),
        "is_active": incident.state in ACTIVE_INCIDENTS,
    }
