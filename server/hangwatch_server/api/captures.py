"""Captures: ask for one, follow it, and read it as merged stacks or as text."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi.responses import PlainTextResponse

from hangwatch_server import durations, model, ranges
from hangwatch_server.api import deps, documents, examples, fields
from hangwatch_server.db import audit

LONGEST_WAIT_S = 120
router = APIRouter(tags=["captures"], dependencies=[deps.READ])


@router.post(
    "/jobs/{job_id}/captures",
    status_code=202,
    summary="Take stacks or recorder entries of some ranks now",
    responses=examples.of(examples.CAPTURE, status=202),
)
async def request_capture(
    response: Response,
    house: deps.House,
    caller: deps.Operator,
    job_id: str,
    body: documents.CaptureRequest,
) -> model.Capture:
    if body.ranks is not None:
        ranges.parse(body.ranks)
    await house.watch.job(job_id)  # one that is over is in conflict, one never seen is not found
    capture = await house.captures.request(
        job_id, ranks=body.ranks, kinds=body.kinds, native=body.native, by=caller.name
    )
    await audit.record(house.db, caller.name, "capture", f"job:{job_id}", capture.id)
    response.headers["location"] = f"/api/v1/captures/{capture.id}"
    return capture


@router.get(
    "/captures/{capture_id}.txt",
    response_class=PlainTextResponse,
    summary="The merged stacks of a capture as text",
    responses=examples.text(examples.CAPTURE_TEXT),
)
async def capture_text(house: deps.House, capture_id: str) -> str:
    return await house.captures.text(capture_id)


@router.get(
    "/captures/{capture_id}/tree",
    summary="The merged stacks of a capture, with rank ranges",
    responses=examples.of(examples.TREE),
)
async def capture_tree(
    house: deps.House,
    capture_id: str,
    native: fields.Native = False,
    framework: fields.Framework = True,
) -> documents.Tree:
    tree = await house.captures.tree(capture_id, native=native, framework=framework)
    return documents.tree(tree)


@router.get(
    "/captures/{capture_id}",
    summary="One capture and its parts; `wait` returns when it is finished",
    responses=examples.of(examples.CAPTURE),
)
async def capture(
    house: deps.House,
    stopping: deps.Stopping,
    capture_id: str,
    wait: Annotated[str, Query(max_length=20, examples=["10s"])] = "0s",
) -> model.Capture:
    wait_s = durations.seconds(wait, longest_s=LONGEST_WAIT_S)
    if wait_s > 0:
        await deps.unless_stopping(stopping, house.captures.wait(capture_id, wait_s))
    return await house.captures.get(capture_id)
