"""The offline page: files that ranks left behind in, the same verdict out as of a watched job."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException

from hangwatch_server import offline, security, uploads, wiring
from hangwatch_server.model import Tree
from hangwatch_server.offline import JobReport, Outcome
from hangwatch_server.pages import boundary, headline, render, ring, sides, stack_view
from hangwatch_server.pages.boundary import PageRoute

MAX_ROWS = 200
MAX_JOBS = 20
_TITLES = {Outcome.HANG: "▲", Outcome.NOTHING: "●", Outcome.UNKNOWN: "◌"}
_MARKS = {Outcome.HANG: "hung", Outcome.NOTHING: "healthy", Outcome.UNKNOWN: "unknown"}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One job's report as the page draws it."""

    report: JobReport
    heading: str
    mark: str
    ring: ring.Ring | None
    sides: tuple[sides.Side, ...]
    stacks: stack_view.StackView | None


class UploadRoute(PageRoute):
    """A body that is too large, or no form, is explained on a page like every other error."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            try:
                return await handler(request)
            except HTTPException as error:
                return boundary.error_page(request, error.status_code, str(error.detail))

        return guarded


router = APIRouter(route_class=UploadRoute)


@router.get("/offline")
@security.for_bound_callers
async def form(request: Request, caller: wiring.Reader) -> Response:
    return render.page(request, "offline", _values(uploads.may(caller)))


@router.post("/offline", dependencies=[uploads.TURN])
@security.form_read_by(uploads.form)
@security.for_bound_callers
async def show(request: Request, caller: wiring.Reader) -> Response:
    report = await uploads.report(request, caller)
    worst = sorted(report.jobs, key=lambda job: list(Outcome).index(job.outcome))
    shown = [_shown(request, job) for job in worst[:MAX_JOBS]]
    values = {
        **_values(True),
        "title": f"{_TITLES[worst[0].outcome] if worst else '◌'} Offline · Hangwatch",
        "report": report,
        "shown": shown,
        "left_out": len(worst) - len(shown),
        "document": offline.document(report).decode(),
    }
    return render.page(request, "offline", values)


def _values(may: bool) -> dict[str, object]:
    return {
        "title": "Offline · Hangwatch",
        "section": "offline",
        "may_give": may,
        "report": None,
        "max_files": uploads.MAX_FILES,
        "max_rows": MAX_ROWS,
        "no_stacks": Tree(capture="", roots=(), classes=(), missing=()),
    }


def _shown(request: Request, job: JobReport) -> Shown:
    return Shown(
        report=job,
        heading=_heading(job),
        mark=_MARKS[job.outcome],
        ring=ring.of_cycle(job.verdict.cycle),
        sides=sides.of(job.verdict.sides),
        stacks=_stacks(request, job),
    )


def _heading(job: JobReport) -> str:
    if job.outcome is Outcome.HANG:
        return headline.of_verdict(job.verdict)
    return "no hang in these files" if job.outcome is Outcome.NOTHING else "these files cannot tell"


def _stacks(request: Request, job: JobReport) -> stack_view.StackView | None:
    """Without addresses for more of them: nothing of the files is kept to answer with."""
    if job.tree is None:
        return None
    culprits = job.verdict.culprit_ranks
    return stack_view.of(job.tree, request, stack_view.Choice(), base="", culprits=culprits)
