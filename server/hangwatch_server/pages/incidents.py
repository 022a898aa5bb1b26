"""The page of one incident: the record of a hang, and what a person may do about it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Form, Query, Request, Response
from fastapi.responses import PlainTextResponse, RedirectResponse

from hangwatch_server.db import audit
from hangwatch_server.db import incidents as incident_rows
from hangwatch_server.errors import HangwatchError, NotFoundError
from hangwatch_server.model import (
    ACTIVE_INCIDENTS,
    Incident,
    PathStep,
)
from hangwatch_server.pages import (
    access,
    commands,
    drawing,
    headline,
    live,
    render,
    stack_segments,
    stack_view,
    text_page,
    words,
)
from hangwatch_server.pages.boundary import PageRoute
from hangwatch_server.services import Services

LONGEST_SNOOZE_MIN = 24 * 60
router = APIRouter(route_class=PageRoute, dependencies=[access.READ])

RankChoice = Annotated[int | None, Query(ge=0, le=1_000_000)]


@router.get("/incidents/{incident_id}.txt", response_class=PlainTextResponse)
async def incident_text(house: access.House, incident_id: str) -> str:
    incident = await _find(house, incident_id)
    stacks = await house.captures.incident_text(incident_id) if incident.captures else ""
    return text_page.of_incident(incident, stacks)


@router.get("/incidents/{incident_id}.json")
async def incident_json(house: access.House, incident_id: str) -> Incident:
    return await _find(house, incident_id)


@router.get("/incidents/{incident_id}/live")
async def incident_live(
    request: Request,
    house: access.House,
    incident_id: str,
    chosen: stack_view.Chosen,
    rank: RankChoice = None,
) -> Response:
    incident = await _find(house, incident_id)
    topics = (f"incident:{incident_id}", f"job:{incident.job}")
    return live.stream(
        request,
        house,
        topics,
        "incident",
        lambda page: _values(page, house, incident_id, rank, chosen),
    )


@router.get("/incidents/{incident_id}")
async def incident(
    request: Request,
    house: access.House,
    incident_id: str,
    chosen: stack_view.Chosen,
    rank: RankChoice = None,
) -> Response:
    values = await _values(request, house, incident_id, rank, chosen)
    return render.page(request, "incident", values)


@router.post("/incidents/{incident_id}/acknowledge")
async def acknowledge(
    house: access.House,
    caller: access.Operator,
    incident_id: str,
    comment: Annotated[str, Form(max_length=2000)] = "",
) -> Response:
    await incident_rows.acknowledge(house.db, incident_id, caller.name, comment)
    await audit.record(house.db, caller.name, "acknowledge", f"incident:{incident_id}", comment)
    return RedirectResponse(f"/incidents/{incident_id}", status_code=303)


@router.post("/incidents/{incident_id}/snooze")
async def snooze(
    house: access.House,
    caller: access.Operator,
    incident_id: str,
    minutes: Annotated[int, Form(ge=1, le=LONGEST_SNOOZE_MIN)],
) -> Response:
    until = datetime.now(UTC) + timedelta(minutes=minutes)
    await incident_rows.snooze(house.db, incident_id, caller.name, until)
    subject = f"incident:{incident_id}"
    await audit.record(house.db, caller.name, "snooze", subject, until.isoformat())
    return RedirectResponse(f"/incidents/{incident_id}", status_code=303)


async def _find(house: Services, incident_id: str) -> Incident:
    found = await incident_rows.find(house.db, incident_id)
    if found is None:
        raise NotFoundError(
            f"Incident '{words.short(incident_id, 40)}' is not known. It may be older than the "
            "retention."
        )
    return found


async def _values(
    request: Request,
    house: Services,
    incident_id: str,
    rank: int | None,
    chosen: stack_view.Choice,
) -> render.Values:
    incident = await _find(house, incident_id)
    is_active = incident.state in ACTIVE_INCIDENTS
    tree = await house.captures.incident_tree(incident_id, native=chosen.native)
    culprits = [
        (
            culprit,
            *stack_segments.stack_of(tree, culprit.rank),
            stack_segments.worker_of(tree, culprit.rank),
        )
        for culprit in incident.verdict.culprits
    ]
    heading = headline.of_incident(incident)
    name = words.plain(words.short(incident.job_name, 40))
    return {
        "title": f"{'▲' if is_active else '✓'} {name}: {heading}",
        "section": "incidents",
        "incident": incident,
        "verdict": incident.verdict,
        "heading": heading,
        "of_culprits": headline.of_culprits(incident.verdict),
        "is_seen_only": headline.is_seen_only(incident.verdict),
        "is_active": is_active,
        "culprits": culprits,
        "path_steps": await _path(house, incident, rank, is_active),
        "rank": rank,
        "ring": drawing.ring(incident.verdict.cycle),
        "captures": incident.captures,
        "stacks": stack_view.of(
            tree,
            request,
            chosen,
            base=f"/incidents/{incident_id}",
            culprits=incident.verdict.culprit_ranks,
        ),
        "commands": commands.of_incident(incident, str(request.base_url)),
    }


async def _path(
    house: Services, incident: Incident, rank: int | None, is_active: bool
) -> tuple[PathStep, ...]:
    """The path of the rank asked for while the job lives, else the one stored with the verdict."""
    if rank is None or not is_active:
        return incident.verdict.path
    try:
        return await house.watch.path(incident.job, rank)
    except HangwatchError:
        return ()
