"""The page of one job: what we believe, every rank, every group, and a capture on demand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Form, Query, Request, Response
from fastapi.responses import PlainTextResponse, RedirectResponse

from hangwatch_agent import wire
from hangwatch_server import ranges
from hangwatch_server.db import audit
from hangwatch_server.errors import BadRangeError
from hangwatch_server.model import Job, RankRow, Verdict
from hangwatch_server.pages import access, drawing, headline, live, rank_grid, render, text_page
from hangwatch_server.pages.boundary import PageRoute
from hangwatch_server.services import Services

MAX_ROWS = 64  # of the ranks table; the grid shows all, the range filter reaches the rest
MAX_GROUPS = 100
_ROW_ORDER = {"culprit": 0, "gone": 1, "silent": 2, "unknown": 3}
router = APIRouter(route_class=PageRoute, dependencies=[access.READ])

RankFilter = Annotated[str, Query(max_length=2000)]


@router.get("/jobs/by-name/{name:path}")
async def job_by_name(house: access.House, name: str) -> Response:
    job = await house.watch.job_by_name(name)
    return RedirectResponse(f"/jobs/{job.id}", status_code=307)


@router.get("/jobs/{job_id}.txt", response_class=PlainTextResponse)
async def job_text(house: access.House, job_id: str) -> str:
    return text_page.of_job(await house.watch.job(job_id), await house.watch.groups(job_id))


@router.get("/jobs/{job_id}.json")
async def job_json(house: access.House, job_id: str) -> Verdict:
    return await house.watch.verdict(job_id)


@router.get("/jobs/{job_id}/live")
async def job_live(
    request: Request, house: access.House, job_id: str, ranks: RankFilter = ""
) -> Response:
    await house.watch.job(job_id)
    topics = (f"job:{job_id}",)
    changes = rank_grid.Changes()
    return live.stream(
        request,
        house,
        topics,
        "job",
        lambda _: _values(house, job_id, ranks),
        lambda values: changes.of(values["grid"]),
    )


@router.get("/jobs/{job_id}")
async def job(
    request: Request, house: access.House, job_id: str, ranks: RankFilter = ""
) -> Response:
    values = await _values(house, job_id, ranks)
    return render.page(request, "job", {**values, "grid_text": rank_grid.encode(values["grid"])})


@router.post("/jobs/{job_id}/captures")
async def take_capture(
    house: access.House,
    caller: access.Operator,
    job_id: str,
    ranks: Annotated[str, Form(max_length=10_000)] = "",
    native: Annotated[bool, Form()] = False,
) -> Response:
    if ranks:
        ranges.parse(ranks)
    capture = await house.captures.request(
        job_id,
        ranks=ranks or None,
        kinds=(wire.CaptureKind.STACKS, wire.CaptureKind.RECORDER),
        native=native,
        by=caller.name,
    )
    await audit.record(house.db, caller.name, "capture", f"job:{job_id}", capture.id)
    return RedirectResponse(f"/captures/{capture.id}", status_code=303)


async def _values(house: Services, job_id: str, asked: str) -> render.Values:
    job = await house.watch.job(job_id)
    rows = await house.watch.ranks(job_id)
    groups = await house.watch.groups(job_id)
    points = await house.watch.timeline(job_id)
    shown, problem = _rows(rows, asked)
    return {
        "title": headline.of_job(job),
        "section": "jobs",
        "job": job,
        "verdict": job.verdict,
        "grid": rank_grid.pack(rows),
        "legend": rank_grid.counts(rows),
        "ranks_total": len(rows),
        "rows": shown[:MAX_ROWS],
        "rows_found": len(shown),
        "asked": asked,
        "problem": problem,
        "groups": groups[:MAX_GROUPS],
        "groups_total": len(groups),
        "line": drawing.line(points),
        "latest": points[-1] if points else None,
        "uptime_s": _uptime_s(job),
    }


def _rows(rows: Sequence[RankRow], asked: str) -> tuple[list[RankRow], str]:
    """The ranks asked for, or all with the odd ones first, and why the filter could not be read."""
    try:
        wanted = set(ranges.parse(asked)) if asked else None
    except BadRangeError as error:
        return _odd_first(rows), str(error)
    if wanted is None:
        return _odd_first(rows), ""
    return [row for row in rows if row.rank in wanted], ""


def _odd_first(rows: Sequence[RankRow]) -> list[RankRow]:
    return sorted(rows, key=lambda row: (_ROW_ORDER.get(row.state, len(_ROW_ORDER)), row.rank))


def _uptime_s(job: Job) -> float:
    return max(0.0, (job.last_seen - job.first_seen).total_seconds())
