"""The page of one job: what we believe, every rank, every group, and a capture on demand."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec
from fastapi import APIRouter, Depends, Form, Query, Request, Response
from fastapi.responses import PlainTextResponse, RedirectResponse
from pydantic import TypeAdapter

from hangwatch_agent import wire
from hangwatch_server import patterns, ranges, security, wiring
from hangwatch_server.db import audit
from hangwatch_server.db import incidents as incident_rows
from hangwatch_server.errors import DatabaseError, NotFoundError
from hangwatch_server.model import SHOWN_INCIDENTS, GroupRow, Incident, Job, Lag, RankRow, Verdict
from hangwatch_server.pages import (
    colouring,
    group_table,
    headline,
    job_choice,
    job_data,
    live,
    negotiation,
    rank_grid,
    render,
    text_page,
)
from hangwatch_server.pages.boundary import PageRoute
from hangwatch_server.pages.colouring import By
from hangwatch_server.pages.job_choice import Choice
from hangwatch_server.services import Services

MAX_ROWS = 64  # of the ranks table; the grid shows all, the range filter reaches the rest
MOST_DEPTHS = 12
MOST_LENSES = 40
PAST_INCIDENTS = 5
THREAD_FROM_RANKS = 2_000  # packing more would hold up agents and other readers
_VERDICT = TypeAdapter(Verdict)
_ROW_ORDER = {"culprit": 0, "gone": 1, "silent": 2, "unknown": 3}
router = APIRouter(route_class=PageRoute, dependencies=[wiring.READ])


@dataclass(frozen=True, slots=True)
class Asked:
    """What the address asks to see."""

    ranks: Annotated[str, Query(max_length=2000)] = ""
    by: Annotated[str, Query(max_length=20)] = ""
    lens: Annotated[str, Query(max_length=300)] = ""
    held: Annotated[str, Query(max_length=64)] = ""  # by the page: a digest, see job_data


Query_ = Annotated[Asked, Depends(Asked)]


@router.get("/jobs/by-name/{name:path}")
@security.for_bound_callers
async def job_by_name(request: Request, house: wiring.House, name: str) -> Response:
    if not patterns.matches(security.jobs_of(request), name):
        raise NotFoundError(f"there is no job named '{name}': `hangwatch status` lists all jobs")
    job = await house.watch.job_by_name(name)
    return RedirectResponse(f"/jobs/{job.id}", status_code=307)


@router.get("/jobs/{job_id}.txt", response_class=PlainTextResponse)
async def job_text(house: wiring.House, job_id: str) -> str:
    return text_page.of_job(await house.watch.job(job_id), await house.watch.groups(job_id))


@router.get("/jobs/{job_id}.json")
async def job_json(house: wiring.House, job_id: str) -> Verdict:
    return await house.watch.verdict(job_id)


@router.get("/jobs/{job_id}/live", dependencies=[wiring.STREAM_PLACE])
async def job_live(request: Request, house: wiring.House, job_id: str, asked: Query_) -> Response:
    await house.watch.job(job_id)
    # A page that connects again has the places which its last stream has sent.
    changes = job_data.Changes(request.headers.get("last-event-id") or asked.held)
    now_s = asyncio.get_running_loop().time
    return live.stream(
        request,
        house,
        (f"job:{job_id}",),
        "job",
        lambda _: _values(house, job_id, asked),
        lambda values: (changes.of(values["grid"], values["points"], now_s()), changes.held),
    )


@router.get("/jobs/{job_id}", response_model=None)
async def job(request: Request, house: wiring.House, job_id: str, asked: Query_) -> Response:
    form = negotiation.wanted(request)
    if form == "json":
        document = _VERDICT.dump_json(await house.watch.verdict(job_id), by_alias=True)
        return Response(document, media_type="application/json")
    if form == "text":
        return PlainTextResponse(await job_text(house, job_id))
    values = await _values(house, job_id, asked)
    grid = values["grid"]
    sent = {"data": job_data.whole(grid, values["points"]), "held": job_data.digest(grid)}
    return render.page(request, "job", {**values, **sent})


@router.post("/jobs/{job_id}/captures", dependencies=[wiring.CAPTURE_LIMIT])
async def take_capture(
    house: wiring.House,
    caller: wiring.Operator,
    job_id: str,
    ranks: Annotated[str, Form(max_length=10_000)] = "",
    native: Annotated[bool, Form()] = False,
) -> Response:
    if ranks:
        ranges.size(ranks)  # one that cannot be read is refused
    capture = await house.captures.request(
        job_id,
        ranks=ranks or None,
        kinds=(wire.CaptureKind.STACKS, wire.CaptureKind.RECORDER),
        native=native,
        by=caller.name,
    )
    await audit.record(house.db, caller.name, "capture", f"job:{job_id}", capture.id)
    return RedirectResponse(f"/captures/{capture.id}", status_code=303)


async def _values(house: Services, job_id: str, asked: Asked) -> render.Values:
    job = await house.watch.job(job_id)
    rows = await house.watch.ranks(job_id)
    groups = await house.watch.groups(job_id)
    points = await house.watch.timeline(job_id)
    depths = await house.watch.depths(job_id)
    choice = job_choice.of(f"/jobs/{job_id}", asked.by, asked.lens, asked.ranks, groups)
    chosen, problem = choice.chosen(job.world_size)
    return {
        "title": headline.of_job(job),
        "section": "jobs",
        "job": job,
        "verdict": job.verdict,
        "choice": choice,
        "depths": depths[:MOST_DEPTHS],
        "points": points,
        "latest": points[-1] if points else None,
        "uptime_s": _uptime_s(job),
        "past": await _past_incidents(house, job),
        "problem": problem,
        **_shown_rows(rows, chosen),
        **await _shown_groups(house, job_id, choice, groups),
        **await _shown_grid(house, job_id, choice, rows, chosen),
    }


def _shown_rows(rows: Sequence[RankRow], chosen: frozenset[int] | None) -> dict[str, object]:
    shown = _odd_first(rows) if chosen is None else [row for row in rows if row.rank in chosen]
    return {
        "rows": shown[:MAX_ROWS],
        "rows_found": len(shown),
        "ranks_total": len(rows),
    }


async def _shown_groups(
    house: Services, job_id: str, choice: Choice, groups: Sequence[GroupRow]
) -> dict[str, object]:
    mesh = await house.watch.mesh(job_id)
    is_lens = choice.gid and choice.by is By.LAG
    return {
        "mesh": mesh,
        "mesh_axes": msgspec.json.encode(mesh.axes).decode(),
        "fold_text": group_table.fold_text,
        "places_text": group_table.places_text,
        "groups": group_table.of(groups, mesh.families, choice.family),
        "lens_group": next((row for row in groups if is_lens and row.gid == choice.gid), None),
        "lenses": [row for row in groups if row.waiting or row.size > 2][:MOST_LENSES],
    }


async def _shown_grid(
    house: Services,
    job_id: str,
    choice: Choice,
    rows: Sequence[RankRow],
    chosen: frozenset[int] | None,
) -> dict[str, object]:
    lags, lens_problem = await _lags(house, job_id, choice)

    def made() -> dict[str, object]:
        coloured = colouring.of(choice.by, rows, lags)
        grid = rank_grid.pack(rows, coloured, lags, chosen)
        return {"grid": grid, "legend": coloured.legend(), "lens_problem": lens_problem}

    return await asyncio.to_thread(made) if len(rows) >= THREAD_FROM_RANKS else made()


async def _lags(house: Services, job_id: str, choice: Choice) -> tuple[dict[int, Lag], str]:
    """By rank, and why there are none: a group may have gone since its address was made."""
    if choice.by is not By.LAG or not choice.lens:
        return {}, ""
    try:
        found = await house.watch.lags(job_id, gid=choice.gid, family=choice.family)
    except NotFoundError:
        return {}, "This group is gone: its process destroyed it, or the job started anew."
    return {lag.rank: lag for lag in found}, ""


async def _past_incidents(house: Services, job: Job) -> list[Incident]:
    """The newest of this job, over all attempts; none while the database is away."""
    try:
        found, _ = await incident_rows.list_page(
            house.db, states=SHOWN_INCIDENTS, job=job.id, limit=PAST_INCIDENTS
        )
    except DatabaseError:
        return []
    return [incident for incident in found if incident.id != job.verdict.incident]


def _odd_first(rows: Sequence[RankRow]) -> list[RankRow]:
    return sorted(rows, key=lambda row: (_ROW_ORDER.get(row.state, len(_ROW_ORDER)), row.rank))


def _uptime_s(job: Job) -> float:
    return max(0.0, (job.last_seen - job.first_seen).total_seconds())
