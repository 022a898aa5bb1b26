"""The verdict of a job: at once, by long poll, or as one word for scripts."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from hangwatch_server import durations, model, wiring
from hangwatch_server.api import deps, examples, fields, plain

LONGEST_WAIT_S = 120
router = APIRouter(prefix="/jobs", tags=["verdicts"], dependencies=[wiring.READ])


@router.get(
    "/{job_id}/verdict",
    response_model=model.Verdict,
    summary="What we believe about a job now; with `index` and `wait` a long poll",
    responses=examples.also_plain(examples.of(examples.VERDICT), "hung\n"),
)
async def verdict(
    request: Request,
    house: wiring.House,
    caller: wiring.Reader,
    job_id: str,
    wait: fields.Wait = "0s",
    index: Annotated[int | None, Query(ge=0, description="The index seen last.")] = None,
    format: plain.Word = plain.Format.JSON,
) -> model.Verdict | Response:
    wait_s = durations.seconds(wait, longest_s=LONGEST_WAIT_S)
    found = None
    if wait_s > 0 and index is not None:
        with house.quotas.waiting.place(caller.id):
            waiting = house.watch.verdict(job_id, index=index, wait_s=wait_s)
            found = await deps.while_wanted(request, waiting)
    found = found or await house.watch.verdict(job_id, index=index)
    return plain.word(found.state) if format is plain.Format.PLAIN else found
