"""The page of one rank: everything known of it, at an address that can be sent on."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from hangwatch_server import ranges, wiring
from hangwatch_server.db import captures as capture_rows
from hangwatch_server.errors import HangwatchError, NotFoundError
from hangwatch_server.model import Culprit, Job, PathStep, RankDetail
from hangwatch_server.pages import live, render, stack_view, words
from hangwatch_server.pages.boundary import PageRoute
from hangwatch_server.services import Services

MAX_CAPTURES = 10
router = APIRouter(route_class=PageRoute, dependencies=[wiring.READ])
Rank = Annotated[int, Path(ge=0, lt=ranges.MAX_RANKS)]


@router.get("/jobs/{job_id}/ranks/{rank}.json")
async def rank_json(house: wiring.House, job_id: str, rank: Rank) -> RankDetail:
    return await house.watch.rank(job_id, rank)


@router.get("/jobs/{job_id}/ranks/{rank}/live", dependencies=[wiring.STREAM_PLACE])
async def rank_live(
    request: Request, house: wiring.House, job_id: str, rank: Rank, chosen: stack_view.Chosen
) -> Response:
    await _job(house, job_id, rank)
    topics = (f"job:{job_id}",)
    return live.stream(
        request, house, topics, "rank", lambda page: _values(page, house, job_id, rank, chosen)
    )


@router.get("/jobs/{job_id}/ranks/{rank}")
async def rank(
    request: Request, house: wiring.House, job_id: str, rank: Rank, chosen: stack_view.Chosen
) -> Response:
    return render.page(request, "rank", await _values(request, house, job_id, rank, chosen))


async def _job(house: Services, job_id: str, rank: int) -> Job:
    job = await house.watch.job(job_id)
    if rank >= job.world_size:
        raise NotFoundError(f"Job '{job_id}' has ranks 0 to {job.world_size - 1}, and no {rank}.")
    return job


async def _values(
    request: Request, house: Services, job_id: str, rank: int, chosen: stack_view.Choice
) -> render.Values:
    job = await _job(house, job_id, rank)
    detail = await house.watch.rank(job_id, rank) if job.is_live else None
    tree = await house.captures.rank_tree(job_id, rank, native=chosen.native)
    state = detail.row.state if detail is not None else "unknown"
    name = words.plain(words.short(job.name, 40))
    return {
        "title": f"rank {rank} {state} · {name}",
        "section": "jobs",
        "job": job,
        "rank": rank,
        "permalink": f"{str(request.base_url).rstrip('/')}/jobs/{job_id}/ranks/{rank}",
        "detail": detail,
        "culprit": _culprit(job, rank),
        "path_steps": await _path(house, job, rank) if detail and detail.row.waits_in else (),
        "tree": tree,
        "stacks": stack_view.of(tree, request, chosen, base=f"/captures/{tree.capture}"),
        "captures": await capture_rows.of_rank(house.db, job_id, rank, MAX_CAPTURES),
    }


def _culprit(job: Job, rank: int) -> Culprit | None:
    return next((item for item in job.verdict.culprits if item.rank == rank), None)


async def _path(house: Services, job: Job, rank: int) -> tuple[PathStep, ...]:
    try:
        return await house.watch.path(job.id, rank)
    except HangwatchError:
        return ()  # the job has left memory since its row was read
