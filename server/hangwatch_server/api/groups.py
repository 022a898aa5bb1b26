"""Process groups of a job: where each stands, who is behind and who waits."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from hangwatch_server import model
from hangwatch_server.api import deps, examples, paging

router = APIRouter(prefix="/jobs", tags=["groups"], dependencies=[deps.READ])


@router.get(
    "/{job_id}/groups",
    summary="The process groups of a job",
    responses=examples.page(examples.GROUP),
)
async def list_groups(
    request: Request,
    response: Response,
    house: deps.House,
    job_id: str,
    limit: paging.LongLimit = 5_000,
    cursor: paging.Offset = None,
) -> paging.Page[model.GroupRow]:
    return paging.slice_of(request, response, await house.watch.groups(job_id), limit, cursor)


@router.get(
    "/{job_id}/groups/{gid}",
    summary="One process group with its members",
    responses=examples.of(examples.GROUP),
)
async def group(house: deps.House, job_id: str, gid: str) -> model.GroupRow:
    return await house.watch.group(job_id, gid)
