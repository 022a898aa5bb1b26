"""Ranks of a job: the state of each, and why one of them waits."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from hangwatch_server import model, ranges, wiring
from hangwatch_server.api import documents, examples, fields, paging, plain
from hangwatch_server.db import captures as capture_rows

router = APIRouter(prefix="/jobs", tags=["ranks"], dependencies=[wiring.READ])


@router.get(
    "/{job_id}/ranks",
    response_model=paging.Page[model.RankRow],
    summary="The state of each rank",
    responses=examples.also_plain(
        examples.page(examples.RANK),
        "5\tculprit\tnode-b\t812\tin_dataloader\ttrain.py:88 in __getitem__\n",
    ),
)
async def list_ranks(
    request: Request,
    response: Response,
    house: wiring.House,
    job_id: str,
    ranks: fields.Ranks = "",
    limit: paging.LongLimit = 20_000,
    cursor: paging.Offset = None,
    format: plain.Lines = plain.Format.JSON,
) -> paging.Page[model.RankRow] | Response:
    """As text: rank, state, node, pid, condition, where."""
    ranges.size(ranks)  # one that cannot be read is refused, whatever the job
    rows = await house.watch.ranks(job_id)
    wanted = ranges.below(ranks, 1 + max((row.rank for row in rows), default=0))
    kept = [row for row in rows if row.rank in wanted] if ranks else rows
    page = paging.slice_of(request, response, kept, limit, cursor)
    return plain.rows(map(_row, page.items), response) if format is plain.Format.PLAIN else page


def _row(row: model.RankRow) -> tuple[object, ...]:
    return row.rank, row.state, row.node, row.pid, row.condition, row.where


RankNumber = Annotated[int, Path(ge=0, lt=ranges.MAX_RANKS)]


@router.get(
    "/{job_id}/ranks/{rank}",
    summary="Everything known of one rank now",
    responses=examples.of(examples.RANK_DETAIL),
)
async def rank_detail(house: wiring.House, job_id: str, rank: RankNumber) -> model.RankDetail:
    return await house.watch.rank(job_id, rank)


@router.get(
    "/{job_id}/ranks/{rank}/captures",
    summary="The captures that one rank was asked for, newest first",
    responses=examples.of([examples.RANK_CAPTURE]),
)
async def rank_captures(
    house: wiring.House, job_id: str, rank: RankNumber
) -> tuple[model.RankCapture, ...]:
    await house.watch.job(job_id)
    return tuple(await capture_rows.of_rank(house.db, job_id, rank))


@router.get(
    "/{job_id}/ranks/{rank}/tree",
    summary="The newest stored stacks of one rank",
    responses=examples.of(examples.TREE),
)
async def rank_tree(
    house: wiring.House, job_id: str, rank: RankNumber, native: fields.Native = False
) -> documents.Tree:
    await house.watch.job(job_id)
    return documents.tree(await house.captures.rank_tree(job_id, rank, native=native))


@router.get(
    "/{job_id}/depths",
    summary="The nodes of a job by how deep they are seen, and what is lacking",
    responses=examples.of([examples.DEPTH]),
)
async def depths(house: wiring.House, job_id: str) -> tuple[model.DepthRow, ...]:
    return await house.watch.depths(job_id)


@router.get(
    "/{job_id}/path",
    summary="Why this rank waits, step by step to its culprit",
    responses=examples.of(examples.PATH),
)
async def rank_path(
    house: wiring.House,
    job_id: str,
    rank: Annotated[int, Query(ge=0, lt=ranges.MAX_RANKS, description="The rank that waits.")],
) -> tuple[model.PathStep, ...]:
    return await house.watch.path(job_id, rank)
