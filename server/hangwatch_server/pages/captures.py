"""The page of one capture: who has answered yet, the merged stacks, and what is missing and why."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse

from hangwatch_server.model import Capture, CaptureState
from hangwatch_server.pages import access, live, render, stack_segments
from hangwatch_server.pages.boundary import PageRoute
from hangwatch_server.services import Services

router = APIRouter(route_class=PageRoute, dependencies=[access.READ])


@router.get("/captures/{capture_id}.txt", response_class=PlainTextResponse)
async def capture_text(house: access.House, capture_id: str) -> str:
    return await house.captures.text(capture_id)


@router.get("/captures/{capture_id}.json")
async def capture_json(house: access.House, capture_id: str) -> Capture:
    return await house.captures.get(capture_id)


@router.get("/captures/{capture_id}/live")
async def capture_live(
    request: Request, house: access.House, capture_id: str, native: bool = False
) -> Response:
    await house.captures.get(capture_id)
    topics = (f"capture:{capture_id}",)
    return live.stream(
        request, house, topics, "capture", lambda _: _values(house, capture_id, native)
    )


@router.get("/captures/{capture_id}")
async def capture(
    request: Request, house: access.House, capture_id: str, native: bool = False
) -> Response:
    return render.page(request, "capture", await _values(house, capture_id, native))


async def _values(house: Services, capture_id: str, native: bool) -> render.Values:
    capture = await house.captures.get(capture_id)
    tree = await house.captures.tree(capture_id, native=native, framework=True)
    answered = sum(part.has_stacks or part.has_entries for part in capture.parts)
    missing = [part for part in capture.parts if part.reason]
    is_taking = capture.state is CaptureState.TAKING
    return {
        "title": f"{f'{answered}/{len(capture.parts)}' if is_taking else 'Stacks'} · Hangwatch",
        "section": "jobs",
        "capture": capture,
        "tree": tree,
        "segments": stack_segments.of_tree(tree),
        "native": native,
        "answered": answered,
        "missing": missing,
        "is_taking": is_taking,
    }
