"""Incidents: the record of each hang, its captures, and what people did about it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import AwareDatetime

from hangwatch_server import durations, model, security, wiring
from hangwatch_server.api import documents, examples, fields, once, paging, plain
from hangwatch_server.db import captures as capture_rows
from hangwatch_server.db import incidents as incident_rows
from hangwatch_server.db import moments as moment_rows
from hangwatch_server.errors import NotFoundError
from hangwatch_server.incidents import people
from hangwatch_server.pages import bundles
from hangwatch_server.services import Services

LONGEST_SNOOZE_S = 30 * 86400
_EXAMPLE_TIME = "2026-11-20T00:00:00Z"
router = APIRouter(
    prefix="/incidents", tags=["incidents"], dependencies=[wiring.READ], route_class=once.OnceRoute
)


@router.get(
    "",
    response_model=paging.Page[model.Incident],
    summary="List incidents, newest first",
    responses=examples.also_plain(
        examples.page(examples.INCIDENT), "i_7c2e\tconfirmed\tgpt-7b\tmissing_ranks\t5\tnode-b\n"
    ),
)
@security.for_bound_callers
async def list_incidents(
    request: Request,
    response: Response,
    house: wiring.House,
    state: Annotated[
        tuple[model.IncidentState, ...], Query(description="Given more than once for several.")
    ] = model.SHOWN_INCIDENTS,
    job: Annotated[
        str | None, Query(max_length=4096, description="Id or whole name of their job.")
    ] = None,
    node: Annotated[
        str | None, Query(max_length=255, description="Node with a culprit of theirs.")
    ] = None,
    since: Annotated[
        AwareDatetime | None, Query(description="Opened then or later.", examples=[_EXAMPLE_TIME])
    ] = None,
    until: Annotated[
        AwareDatetime | None, Query(description="Opened before.", examples=[_EXAMPLE_TIME])
    ] = None,
    limit: paging.Limit = 50,
    cursor: paging.Cursor = None,
    format: plain.Lines = plain.Format.JSON,
) -> paging.Page[model.Incident] | Response:
    """As text: id, state, job, kind, culprits, their nodes."""
    rows, after = await incident_rows.list_page(
        house.db,
        states=state,
        job=job,
        node=node,
        since=since,
        until=until,
        limit=limit,
        before=cursor,
        names=security.jobs_of(request),
    )
    page = paging.page(request, response, rows, after)
    return plain.rows(map(_row, rows), response) if format is plain.Format.PLAIN else page


def _row(row: model.Incident) -> tuple[object, ...]:
    nodes = ",".join(row.culprit_nodes)
    return row.id, row.state, row.job_name, row.kind, row.culprit_ranks, nodes


@router.get("/{incident_id}", summary="One incident", responses=examples.of(examples.INCIDENT))
async def incident(house: wiring.House, incident_id: str) -> model.Incident:
    return await _find(house, incident_id)


@router.get(
    "/{incident_id}/captures",
    summary="The captures taken for an incident",
    responses=examples.of([examples.CAPTURE]),
)
async def incident_captures(house: wiring.House, incident_id: str) -> tuple[model.Capture, ...]:
    await _find(house, incident_id)
    return tuple(await capture_rows.of_incident(house.db, incident_id))


@router.get(
    "/{incident_id}/tree",
    summary="The newest stacks of each rank over all captures of an incident, merged",
    responses=examples.of(examples.TREE),
)
async def incident_tree(
    house: wiring.House,
    incident_id: str,
    native: fields.Native = False,
    framework: fields.Framework = True,
) -> documents.Tree:
    await _find(house, incident_id)
    tree = await house.captures.incident_tree(incident_id, native=native, framework=framework)
    return documents.tree(tree)


@router.get(
    "/{incident_id}/moments",
    summary="Groups, last calls, processes, GPUs and nodes as they were when it opened and changed",
    responses=examples.of([examples.MOMENT]),
)
async def incident_moments(house: wiring.House, incident_id: str) -> tuple[model.Moment, ...]:
    await _find(house, incident_id)
    return await moment_rows.of_incident(house.db, incident_id)


@router.get(
    "/{incident_id}/path",
    summary="Why a rank waits, step by step to its culprit, also after the job's end",
    responses=examples.of(examples.PATH),
)
async def incident_path(
    house: wiring.House,
    incident_id: str,
    rank: Annotated[int, Query(ge=0, le=1_000_000, description="Global rank.")],
) -> tuple[model.PathStep, ...]:
    return await house.watch.incident_path(await _find(house, incident_id), rank)


@router.get(
    "/{incident_id}/bundle.zip",
    summary="Everything known of an incident as one zip file",
    response_class=StreamingResponse,
    dependencies=[wiring.BUNDLE_PLACE],
    responses={200: {"content": {"application/zip": {}}}},
)
async def incident_bundle(house: wiring.House, incident_id: str) -> StreamingResponse:
    return await bundles.response(house, await _find(house, incident_id))


@router.post(
    "/{incident_id}/acknowledge",
    dependencies=[once.KEY],
    summary="Say that somebody looks after it; again is no error",
    responses=examples.of(examples.INCIDENT),
)
async def acknowledge(
    house: wiring.House,
    caller: wiring.Operator,
    incident_id: str,
    body: documents.Acknowledgement | None = None,
) -> model.Incident:
    comment = body.comment if body else ""
    return await people.acknowledge(house.db, house.bus, incident_id, caller.name, comment)


@router.post(
    "/{incident_id}/comments",
    status_code=201,
    dependencies=[once.KEY],
    summary="Leave a note in its history",
    responses=examples.of(examples.INCIDENT, status=201),
)
async def comment(
    house: wiring.House, caller: wiring.Operator, incident_id: str, body: documents.NewComment
) -> model.Incident:
    return await people.comment(house.db, house.bus, incident_id, caller.name, body.text)


@router.post(
    "/{incident_id}/snooze",
    dependencies=[once.KEY],
    summary="Be silent about it until a time",
    responses=examples.of(examples.INCIDENT),
)
async def snooze(
    house: wiring.House, caller: wiring.Operator, incident_id: str, body: documents.Snooze
) -> model.Incident:
    return await people.snooze(
        house.db,
        house.bus,
        incident_id,
        caller.name,
        _end_of(body),
        to_end=body.until_job_ends,
    )


async def _find(house: Services, incident_id: str) -> model.Incident:
    found = await incident_rows.find(house.db, incident_id)
    if found is None:
        raise NotFoundError(
            f"incident '{incident_id}' is not known: it may be older than the retention; list "
            "them with GET /api/v1/incidents"
        )
    return found


def _end_of(body: documents.Snooze) -> datetime:
    now = datetime.now(UTC)
    until = body.until
    if body.until_job_ends:
        return now + timedelta(seconds=LONGEST_SNOOZE_S)
    if until is None:
        length_s = durations.seconds(body.for_ or "", longest_s=LONGEST_SNOOZE_S)
        until = now + timedelta(seconds=length_s)
    if not now < until <= now + timedelta(seconds=LONGEST_SNOOZE_S):
        raise durations.BadDurationError("a snooze ends in the future, within 30 days")
    return until.astimezone(UTC)
