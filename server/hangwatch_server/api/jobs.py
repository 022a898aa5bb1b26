"""Jobs: the list, one by id or name, its deletion, and the hold for epilogs and preStop hooks."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from hangwatch_server import durations, model, patterns, security, wiring
from hangwatch_server.api import deps, examples, fields, paging, plain
from hangwatch_server.db import audit
from hangwatch_server.db import jobs as job_rows
from hangwatch_server.errors import ConflictError, NotFoundError

LONGEST_HOLD_S = 120
router = APIRouter(prefix="/jobs", tags=["jobs"], dependencies=[wiring.READ])


@router.get(
    "",
    response_model=paging.Page[model.Job],
    summary="List jobs, newest first",
    responses=examples.also_plain(
        examples.page(examples.JOB), "b3f1c07a9d24\thung\tgpt-7b\t8/8\t5\tRank 5 …\n"
    ),
)
@security.for_bound_callers
async def list_jobs(
    request: Request,
    response: Response,
    house: wiring.House,
    state: Annotated[model.State | None, Query(description="Only jobs in this state.")] = None,
    q: Annotated[str, Query(max_length=200, description="Part of the name or id.")] = "",
    limit: paging.Limit = 50,
    cursor: paging.Cursor = None,
    format: plain.Lines = plain.Format.JSON,
) -> paging.Page[model.Job] | Response:
    """As text: id, state, name, ranks reporting, culprits, summary."""
    names = security.jobs_of(request)
    jobs, after = await house.watch.jobs(
        state=state, query=q, limit=limit, cursor=cursor, names=names
    )
    page = paging.page(request, response, jobs, after)
    return plain.rows(map(_row, jobs), response) if format is plain.Format.PLAIN else page


def _row(job: model.Job) -> tuple[object, ...]:
    ranks = f"{job.reporting}/{job.world_size}"
    verdict = job.verdict
    return job.id, job.state, job.name, ranks, verdict.culprit_ranks, verdict.summary


@router.get(
    "/by-name/{name:path}",
    summary="The newest job of this name",
    responses=examples.of(examples.JOB),
)
@security.for_bound_callers
async def job_by_name(request: Request, house: wiring.House, name: str) -> model.Job:
    if not patterns.matches(security.jobs_of(request), name):
        raise NotFoundError(f"there is no job named '{name}': `hangwatch status` lists all jobs")
    return await house.watch.job_by_name(name)


@router.get("/{job_id}", summary="One job", responses=examples.of(examples.JOB))
async def job(house: wiring.House, job_id: str) -> model.Job:
    return await house.watch.job(job_id)


@router.delete("/{job_id}", status_code=204, summary="Delete a job that is over, with all it left")
async def delete_job(house: wiring.House, caller: wiring.Admin, job_id: str) -> None:
    found = await house.watch.job(job_id)
    if found.is_live:
        raise ConflictError(
            f"job '{found.name}' still runs and would come back: stop it, then delete it"
        )
    await job_rows.delete(house.db, job_id)
    await audit.record(house.db, caller.name, "job.delete", f"job:{job_id}", found.name)


@router.get(
    "/{job_id}/timeline",
    summary="Collectives per second over the last 30 minutes",
    responses=examples.of([examples.TIMELINE_POINT]),
)
async def timeline(house: wiring.House, job_id: str) -> tuple[model.TimelinePoint, ...]:
    return tuple(await house.watch.timeline(job_id))


@router.post(
    "/{job_id}/hold",
    summary="Wait until the evidence of a hang is stored, or time is up",
    responses=examples.of(examples.HOLD),
)
async def hold(
    request: Request,
    house: wiring.House,
    caller: wiring.Operator,
    job_id: str,
    wait: Annotated[fields.Wait, Query(alias="timeout")] = "30s",
) -> model.Hold:
    timeout_s = durations.seconds(wait, longest_s=LONGEST_HOLD_S)
    with house.quotas.waiting.place(caller.id):
        held = await deps.while_wanted(request, house.watch.hold(job_id, timeout_s))
    return held if held is not None else await house.watch.hold(job_id, 0)
