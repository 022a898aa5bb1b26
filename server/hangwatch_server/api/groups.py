"""Process groups of a job: where each stands, who is behind and who waits."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from hangwatch_server import model, wiring
from hangwatch_server.api import examples, paging

router = APIRouter(prefix="/jobs", tags=["groups"], dependencies=[wiring.READ])


@router.get(
    "/{job_id}/groups",
    summary="The process groups of a job",
    responses=examples.page(examples.GROUP),
)
async def list_groups(
    request: Request,
    response: Response,
    house: wiring.House,
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
async def group(house: wiring.House, job_id: str, gid: str) -> model.GroupRow:
    return await house.watch.group(job_id, gid)


@router.get(
    "/{job_id}/mesh",
    summary="How the process groups lie over the ranks: dimensions and families",
    responses=examples.of(examples.MESH),
)
async def mesh(house: wiring.House, job_id: str) -> model.Mesh:
    return await house.watch.mesh(job_id)


@router.get(
    "/{job_id}/lags",
    summary="How far each rank is behind the front of its group",
    responses=examples.of([examples.LAG]),
)
async def lags(
    house: wiring.House,
    job_id: str,
    group: Annotated[str, Query(max_length=64, description="The `gid` of one group.")] = "",
    family: Annotated[
        str,
        Query(max_length=200, description="Instead: all groups of one family of the job's mesh."),
    ] = "",
) -> tuple[model.Lag, ...]:
    return await house.watch.lags(job_id, gid=group, family=family)
