"""Ranks of a job: the state of each, and why one of them waits."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from hangwatch_server import model, ranges
from hangwatch_server.api import deps, examples, paging

router = APIRouter(prefix="/jobs", tags=["ranks"], dependencies=[deps.READ])


@router.get(
    "/{job_id}/ranks", summary="The state of each rank", responses=examples.page(examples.RANK)
)
async def list_ranks(
    request: Request,
    response: Response,
    house: deps.House,
    job_id: str,
    ranks: Annotated[
        str, Query(max_length=10_000, description="Rank range; absent for all.", examples=["0-3,7"])
    ] = "",
    limit: paging.LongLimit = 20_000,
    cursor: paging.Offset = None,
) -> paging.Page[model.RankRow]:
    wanted = frozenset(ranges.parse(ranks))
    rows = await house.watch.ranks(job_id)
    kept = [row for row in rows if row.rank in wanted] if ranks else rows
    return paging.slice_of(request, response, kept, limit, cursor)


@router.get(
    "/{job_id}/path",
    summary="Why this rank waits, step by step to its culprit",
    responses=examples.of(examples.PATH),
)
async def path(
    house: deps.House,
    job_id: str,
    rank: Annotated[int, Query(ge=0, lt=ranges.MAX_RANKS, description="The rank that waits.")],
) -> tuple[model.PathStep, ...]:
    return await house.watch.path(job_id, rank)
