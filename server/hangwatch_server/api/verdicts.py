"""The verdict of a job: at once, by long poll, or as one word for scripts."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi.responses import PlainTextResponse

from hangwatch_server import durations, model
from hangwatch_server.api import deps, examples, fields, openapi

LONGEST_WAIT_S = 120
router = APIRouter(prefix="/jobs", tags=["verdicts"], dependencies=[deps.READ])


class Format(StrEnum):
    JSON = "json"
    PLAIN = "plain"  # the state, one word


@router.get(
    "/{job_id}/verdict",
    response_model=model.Verdict,
    summary="What we believe about a job now; with `index` and `wait` a long poll",
    responses=examples.of(examples.VERDICT) | openapi.TOO_MANY,
)
async def verdict(
    house: deps.House,
    stopping: deps.Stopping,
    caller: deps.Reader,
    job_id: str,
    wait: fields.Wait = "0s",
    index: Annotated[int | None, Query(ge=0, description="The index seen last.")] = None,
    format: Annotated[
        Format, Query(description="`plain` is the state alone, for scripts.")
    ] = Format.JSON,
) -> model.Verdict | Response:
    wait_s = durations.seconds(wait, longest_s=LONGEST_WAIT_S)
    found = None
    if wait_s > 0 and index is not None:
        with house.quotas.waiting.place(caller.name):
            waiting = house.watch.verdict(job_id, index=index, wait_s=wait_s)
            found = await deps.unless_stopping(stopping, waiting)
    found = found or await house.watch.verdict(job_id)
    if format is Format.PLAIN:
        return PlainTextResponse(f"{found.state}\n")
    return found
