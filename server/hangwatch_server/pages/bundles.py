"""The zip file with everything known of an incident, as the pages and the API send it."""

from __future__ import annotations

from fastapi.responses import StreamingResponse
from pydantic import TypeAdapter

from hangwatch_server.db import moments
from hangwatch_server.incidents import bundle
from hangwatch_server.model import Incident, Moment
from hangwatch_server.pages import text_page
from hangwatch_server.services import Services

_INCIDENT = TypeAdapter(Incident)
_MOMENTS = TypeAdapter(tuple[Moment, ...])


def document(incident: Incident) -> bytes:
    """The incident as JSON, as the API answers it."""
    return _INCIDENT.dump_json(incident, by_alias=True, indent=2)


async def response(house: Services, incident: Incident) -> StreamingResponse:
    stacks = await house.captures.incident_text(incident.id) if incident.captures else ""
    found = await moments.of_incident(house.db, incident.id)
    documents = {
        "incident.txt": text_page.of_incident(incident, stacks).encode(),
        "incident.json": document(incident),
        "moments.json": _MOMENTS.dump_json(found, by_alias=True, indent=2),
    }
    return StreamingResponse(
        bundle.stream(house.db, incident.id, documents),
        media_type="application/zip",
        headers={
            "content-disposition": f'attachment; filename="hangwatch-incident-{incident.id}.zip"',
            "cache-control": "no-store",
        },
    )
