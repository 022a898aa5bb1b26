"""The overview: is anything stuck now, every job that runs, worst first, and those before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import RedirectResponse

from hangwatch_server import patterns, security, wiring
from hangwatch_server.model import Job, State
from hangwatch_server.pages import drawing, headline, live, render, words
from hangwatch_server.pages.boundary import PageRoute
from hangwatch_server.services import Services

PAGE_JOBS = 50
EARLIER_JOBS = 20
TOPICS = ("jobs",)
router = APIRouter(route_class=PageRoute, dependencies=[wiring.READ])


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What the address asks for; each part may be absent."""

    state: State | None = None
    search: str = ""
    page: int = 1  # of the jobs that run
    before: str = ""  # cursor in the jobs that ran before

    @property
    def is_any(self) -> bool:
        return self.state is not None or bool(self.search)

    def address(self, **changes: str) -> str:
        """The overview under these filters, some of them changed; always from its first page."""
        values = {"state": self.state or "", "q": self.search, **changes}
        query = urlencode({name: value for name, value in values.items() if value})
        return f"/?{query}" if query else "/"


def _filters(
    state: Annotated[State | None, Query()] = None,
    q: Annotated[str, Query(max_length=200)] = "",
    page: Annotated[int, Query(ge=1, le=100_000)] = 1,
    before: Annotated[str, Query(max_length=300)] = "",
) -> Filters:
    return Filters(state=state, search=q.strip(), page=page, before=before)


Asked = Annotated[Filters, Depends(_filters)]


@router.get("/")
@security.for_bound_callers
async def overview(request: Request, house: wiring.House, asked: Asked) -> Response:
    return render.page(request, "overview", await _values(request, house, asked))


@router.get("/live", dependencies=[wiring.STREAM_PLACE])
@security.for_bound_callers
async def overview_live(request: Request, house: wiring.House, asked: Asked) -> Response:
    return live.stream(request, house, TOPICS, "overview", lambda page: _values(page, house, asked))


@router.get("/jobs")
@security.for_bound_callers
async def jobs() -> Response:
    return RedirectResponse("/", status_code=307)


async def _values(request: Request, house: Services, asked: Filters) -> render.Values:
    names = security.jobs_of(request)
    live_jobs = await house.watch.live_jobs()
    running = worst_first([job for job in live_jobs if patterns.matches(names, job.name)])
    found = [job for job in running if _matches(job, asked)]
    start = (asked.page - 1) * PAGE_JOBS
    shown = found[start : start + PAGE_JOBS]
    earlier, more = await house.watch.earlier_jobs(
        state=asked.state,
        query=asked.search,
        limit=EARLIER_JOBS,
        cursor=asked.before or None,
        names=names,
    )
    head = headline.of_jobs(running, has_earlier=bool(earlier))
    return {
        "title": head.title,
        "section": "jobs",
        "as_json": f"/api/v1/jobs{asked.address().removeprefix('/')}",
        "headline": head,
        "jobs": shown,
        "lines": {job.id: headline.line(job.verdict) for job in shown},
        "sparks": await _sparks(house, shown),
        "found": len(found),
        "start": start,
        "earlier": earlier,
        "earlier_lines": {job.id: headline.line(job.verdict) for job in earlier},
        "has_any": bool(running or earlier or asked.is_any or asked.before),
        "counts": _counts(running),
        "asked": asked,
        "search": asked.search,
        "newer": asked.address(page=str(asked.page - 1)) if asked.page > 1 else "",
        "further": asked.address(page=str(asked.page + 1))
        if start + PAGE_JOBS < len(found)
        else "",
        "older": asked.address(before=more) if more else "",
        "server_url": str(request.base_url).rstrip("/"),
    }


async def _sparks(house: Services, shown: Sequence[Job]) -> Mapping[str, drawing.Spark | None]:
    return {job.id: drawing.spark(await house.watch.pace(job.id)) for job in shown}


def _matches(job: Job, asked: Filters) -> bool:
    if asked.state is not None and job.state is not asked.state:
        return False
    wanted = asked.search.casefold()
    return wanted in job.name.casefold() or job.id.startswith(wanted)


def worst_first(jobs: Sequence[Job]) -> list[Job]:
    """By state, then the longest stalled, then by name so that equals keep their places."""
    return sorted(
        jobs,
        key=lambda job: (
            words.STATE_ORDER.index(job.state),
            -_stalled_s(job),
            job.name,
            job.id,
        ),
    )


def _stalled_s(job: Job) -> float:
    """What sorts within a state; of healthy jobs nothing, as it changes from look to look."""
    is_calm = job.state in (State.HEALTHY, State.STARTING, State.FINISHED)
    return 0.0 if is_calm else job.verdict.stalled_s


def _counts(jobs: Sequence[Job]) -> list[tuple[State, int]]:
    found = [(state, sum(job.state is state for job in jobs)) for state in words.STATE_ORDER]
    return [(state, count) for state, count in found if count]
