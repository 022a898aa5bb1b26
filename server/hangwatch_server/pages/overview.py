"""The overview: is anything stuck now, and every job, worst first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from hangwatch_server.model import Job, State
from hangwatch_server.pages import access, headline, live, render, words
from hangwatch_server.pages.boundary import PageRoute
from hangwatch_server.services import Services

PAGE_JOBS = 100
TOPICS = ("jobs",)
router = APIRouter(route_class=PageRoute, dependencies=[access.READ])

StateFilter = Annotated[State | None, Query(alias="state")]
Search = Annotated[str, Query(alias="q", max_length=200)]
Cursor = Annotated[str | None, Query(max_length=300)]


@router.get("/")
async def overview(
    request: Request,
    house: access.House,
    state: StateFilter = None,
    search: Search = "",
    cursor: Cursor = None,
) -> Response:
    return render.page(request, "overview", await _values(request, house, state, search, cursor))


@router.get("/live")
async def overview_live(
    request: Request,
    house: access.House,
    state: StateFilter = None,
    search: Search = "",
    cursor: Cursor = None,
) -> Response:
    return live.stream(
        request, house, TOPICS, "overview", lambda _: _values(request, house, state, search, cursor)
    )


@router.get("/jobs")
async def jobs() -> Response:
    return RedirectResponse("/", status_code=307)


async def _values(
    request: Request, house: Services, state: State | None, search: str, cursor: str | None
) -> render.Values:
    everything, more = await house.watch.jobs(state=None, query="", limit=PAGE_JOBS, cursor=None)
    shown: Sequence[Job] = everything
    if state is not None or search or cursor:
        shown, more = await house.watch.jobs(
            state=state, query=search, limit=PAGE_JOBS, cursor=cursor
        )
    ordered = worst_first(everything)
    head = headline.of_jobs(ordered)
    return {
        "title": head.title,
        "section": "jobs",
        "headline": head,
        "jobs": worst_first(shown),
        "has_any": bool(everything),
        "counts": _counts(everything),
        "state": state,
        "search": search,
        "more": more,
        "server_url": str(request.base_url).rstrip("/"),
    }


def worst_first(jobs: Sequence[Job]) -> list[Job]:
    """By state, then the longest stalled, then by name so that equals keep their places."""
    return sorted(
        jobs,
        key=lambda job: (
            words.STATE_ORDER.index(job.state),
            -job.verdict.stalled_s,
            job.name,
            job.id,
        ),
    )


def _counts(jobs: Sequence[Job]) -> list[tuple[State, int]]:
    found = [(state, sum(job.state is state for job in jobs)) for state in words.STATE_ORDER]
    return [(state, count) for state, count in found if count]
