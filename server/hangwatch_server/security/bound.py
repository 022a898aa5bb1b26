"""What a caller may reach whose token is limited to some jobs: those jobs, and what hangs on them.

Closed by default. A route that names its job, incident or capture is checked here, and one that is
not the caller's is answered as one that does not exist. Of all other routes only those are open
that say with `for_bound_callers` that they show each caller no more than is theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import Request

from hangwatch_server import patterns
from hangwatch_server.db import incidents
from hangwatch_server.errors import NotFoundError

C = TypeVar("C", bound=Callable[..., Any])  # Any: handlers of every shape
_MARK = "shows_bound_callers_their_own"


def for_bound_callers(handler: C) -> C:
    """Mark a handler that leaves out what a bound caller may not see."""
    setattr(handler, _MARK, True)
    return handler


async def may_reach(request: Request, pattern: str) -> bool:
    """Whether a caller of these jobs may use this route at all.

    Raises NotFoundError where the job, incident or capture that it names is another's.
    """
    named = request.path_params
    job, incident, capture = (named.get(f"{kind}_id") for kind in ("job", "incident", "capture"))
    if not (job or incident or capture):
        return bool(getattr(request.scope.get("endpoint"), _MARK, False))
    await check(request, pattern, job=job, incident=incident, capture=capture)
    if capture and (earlier := request.query_params.get("before")):
        await check(request, pattern, capture=earlier)
    return True


async def check(
    request: Request,
    pattern: str,
    *,
    job: str | None = None,
    incident: str | None = None,
    capture: str | None = None,
) -> None:
    """Raise NotFoundError unless all that is given is of jobs with such names."""
    if job:
        await _check_job(request, pattern, job)
    if incident:
        await _check_incident(request, pattern, incident)
    if capture:
        await _check_capture(request, pattern, capture)


async def _check_job(request: Request, pattern: str, job_id: str) -> None:
    job = await request.app.state.services.watch.job(job_id)
    if not patterns.matches(pattern, job.name):
        # Here and below in the words of an unknown one: an answer does not tell which ids exist.
        raise NotFoundError(f"there is no job '{job_id}': `hangwatch status` lists all jobs")


async def _check_incident(request: Request, pattern: str, incident_id: str) -> None:
    incident = await incidents.find(request.app.state.services.db, incident_id)
    if incident is None or not patterns.matches(pattern, incident.job_name):
        raise NotFoundError(
            f"incident '{incident_id}' is not known: it may be older than the retention; list "
            "them with GET /api/v1/incidents"
        )


async def _check_capture(request: Request, pattern: str, capture_id: str) -> None:
    services = request.app.state.services
    capture = await services.captures.get(capture_id)
    job = await services.watch.job(capture.job)
    if not patterns.matches(pattern, job.name):
        raise NotFoundError(
            f"there is no capture '{capture_id}': its job page lists those that are kept"
        )
