"""Captures: ask for one, follow it, and read it as merged stacks or as text."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import PlainTextResponse

from hangwatch_server import durations, model, ranges, wiring
from hangwatch_server.api import deps, documents, examples, fields, once, paging
from hangwatch_server.db import audit

LONGEST_WAIT_S = 120
router = APIRouter(tags=["captures"], dependencies=[wiring.READ], route_class=once.OnceRoute)


@router.post(
    "/jobs/{job_id}/captures",
    status_code=202,
    summary="Take stacks or recorder entries of some ranks now",
    dependencies=[once.KEY, wiring.CAPTURE_LIMIT],
    responses=examples.of(examples.CAPTURE, status=202),
)
async def request_capture(
    response: Response,
    house: wiring.House,
    caller: wiring.Operator,
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
    "/jobs/{job_id}/captures",
    summary="A job's captures, newest first, without their parts",
    responses=examples.page({**examples.CAPTURE, "parts": []}),
)
async def job_captures(
    request: Request,
    response: Response,
    house: wiring.House,
    job_id: str,
    limit: paging.Limit = 50,
    cursor: paging.Cursor = None,
) -> paging.Page[model.Capture]:
    await house.watch.job(job_id)
    rows, after = await house.captures.of_job(job_id, limit=limit, before=cursor)
    return paging.page(request, response, rows, after)


@router.get(
    "/captures/{capture_id}.txt",
    response_class=PlainTextResponse,
    summary="The merged stacks of a capture as text",
    responses=examples.text(examples.CAPTURE_TEXT),
)
async def capture_text(
    house: wiring.House, capture_id: str, native: fields.NativeIfTaken = None
) -> str:
    return await house.captures.text(capture_id, native=native)


@router.get(
    "/captures/{capture_id}/tree",
    summary="The merged stacks of a capture, with rank ranges",
    responses=examples.of(examples.TREE),
)
async def capture_tree(
    house: wiring.House,
    capture_id: str,
    native: fields.Native = False,
    framework: fields.Framework = True,
    before: fields.Before = None,
) -> documents.Tree:
    tree = await house.captures.tree(capture_id, native=native, framework=framework, before=before)
    return documents.tree(tree)


@router.get(
    "/captures/{capture_id}/compare",
    summary="Which ranks moved between two captures of a job, and from where to where",
    responses=examples.of(examples.COMPARISON),
)
async def capture_comparison(
    house: wiring.House,
    capture_id: str,
    before: Annotated[str, Query(max_length=64, description="Id of the earlier capture.")],
) -> model.Comparison:
    return await house.captures.compare(before, capture_id)


@router.get(
    "/captures/{capture_id}/speedscope",
    summary="The stacks of a capture as a file for speedscope; a sample weighs as many ranks",
    responses=examples.of(examples.SPEEDSCOPE),
)
async def capture_speedscope(
    house: wiring.House, capture_id: str, native: fields.Native = False
) -> Response:
    content = await house.captures.speedscope(capture_id, native=native)
    return _file(content, f"{capture_id}.speedscope.json")


@router.get(
    "/captures/{capture_id}/chrome-trace",
    summary="The stacks of a capture as a trace for Perfetto: a track per distinct stack",
    responses=examples.of(examples.CHROME_TRACE),
)
async def capture_chrome_trace(
    house: wiring.House, capture_id: str, native: fields.Native = False
) -> Response:
    content = await house.captures.chrome_trace(capture_id, native=native)
    return _file(content, f"{capture_id}.trace.json")


@router.get(
    "/captures/{capture_id}",
    summary="One capture and its parts; `wait` returns when it is finished",
    responses=examples.of(examples.CAPTURE),
)
async def capture(
    request: Request,
    house: wiring.House,
    caller: wiring.Reader,
    capture_id: str,
    wait: fields.Wait = "0s",
) -> model.Capture:
    wait_s = durations.seconds(wait, longest_s=LONGEST_WAIT_S)
    if wait_s > 0:
        with house.quotas.waiting.place(caller.id):
            await deps.while_wanted(request, house.captures.wait(capture_id, wait_s))
    return await house.captures.get(capture_id)


def _file(content: bytes, name: str) -> Response:
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type="application/json", headers=headers)
