"""What the operator's command did about an incident."""

from __future__ import annotations

from fastapi import APIRouter

from hangwatch_server import wiring
from hangwatch_server.api import examples
from hangwatch_server.db import actions as rows
from hangwatch_server.errors import NotFoundError
from hangwatch_server.model.actions import ActionRun

router = APIRouter(prefix="/incidents", tags=["incidents"], dependencies=[wiring.READ])


@router.get(
    "/{incident_id}/action",
    summary="The command that was run on an incident, and how it ended",
    responses=examples.of(examples.ACTION),
)
async def action(house: wiring.House, incident_id: str) -> ActionRun:
    found = await rows.find(house.db, incident_id)
    if found is None:
        raise NotFoundError(
            f"no command was run on incident '{incident_id}': that needs --action-command, a "
            "verdict that is certain enough, and nobody who looks after it"
        )
    return found
