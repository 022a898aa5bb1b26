"""Captures: who has answered yet and what is missing and why; a job's captures; two compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import PlainTextResponse

from hangwatch_server import ranges, wiring
from hangwatch_server.captures import pairing
from hangwatch_server.errors import NotFoundError
from hangwatch_server.model import Capture, CaptureState, PartRow, Tree
from hangwatch_server.pages import live, render, stack_view, words
from hangwatch_server.pages.boundary import PageRoute
from hangwatch_server.services import Services

PAGE_CAPTURES = 50
MAX_GAPS = 100
MAX_MOVES = 200
# While so many ranks answer, the tree would change faster than it is merged: it comes at the end.
TREE_WHILE_TAKING = 512
_EMPTY = Tree(capture="", roots=(), classes=(), missing=())
router = APIRouter(route_class=PageRoute, dependencies=[wiring.READ])

Before = Annotated[str, Query(max_length=64)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Ranks that gave nothing for one and the same reason."""

    ranks: str
    nodes: tuple[str, ...]
    pids: tuple[int, ...]
    reason: str
    remedy: str


@router.get("/captures/{capture_id}.txt", response_class=PlainTextResponse)
async def capture_text(house: wiring.House, capture_id: str) -> str:
    return await house.captures.text(capture_id)


@router.get("/captures/{capture_id}.json")
async def capture_json(house: wiring.House, capture_id: str) -> Capture:
    return await house.captures.get(capture_id)


@router.get("/captures/{capture_id}/stacks/live", dependencies=[wiring.STREAM_PLACE])
@router.get("/captures/{capture_id}/live", dependencies=[wiring.STREAM_PLACE])
async def capture_live(
    request: Request,
    house: wiring.House,
    chosen: stack_view.Chosen,
    capture_id: str,
    before: Before = "",
) -> Response:
    await house.captures.get(capture_id)
    topics = (f"capture:{capture_id}",)
    return live.stream(
        request,
        house,
        topics,
        "capture",
        lambda page: _values(page, house, capture_id, chosen, before),
    )


@router.get("/captures/{capture_id}/compare")
async def compare(
    request: Request,
    house: wiring.House,
    chosen: stack_view.Chosen,
    capture_id: str,
    before: Before,
) -> Response:
    comparison = await house.captures.compare(before, capture_id)
    tree = await house.captures.tree(capture_id, native=chosen.native, before=before)
    apart_s = (comparison.after.requested_at - comparison.before.requested_at).total_seconds()
    moved = words.count(comparison.moved)
    values = {
        "title": f"{words.plural(moved, 'rank')} moved · Hangwatch",
        "section": "jobs",
        "comparison": comparison,
        "moved": moved,
        "frozen": words.count(comparison.frozen),
        "apart_s": abs(apart_s),
        "is_backwards": apart_s < 0,
        "moves": comparison.moves[:MAX_MOVES],
        "stacks": stack_view.of(tree, request, chosen, base=f"/captures/{capture_id}"),
    }
    return render.page(request, "compare", values)


@router.get("/captures/{capture_id}/branches")
async def branches(
    request: Request,
    house: wiring.House,
    chosen: stack_view.Chosen,
    capture_id: str,
    before: Before = "",
) -> Response:
    tree = await house.captures.tree(capture_id, native=chosen.native, before=before or None)
    return stack_view.more(tree, request, chosen, base=f"/captures/{capture_id}")


@router.get("/captures/{capture_id}/stacks")
@router.get("/captures/{capture_id}")
async def capture(
    request: Request,
    house: wiring.House,
    chosen: stack_view.Chosen,
    capture_id: str,
    before: Before = "",
) -> Response:
    values = await _values(request, house, capture_id, chosen, before)
    return render.page(request, "capture", values)


@router.get("/jobs/{job_id}/captures")
async def job_captures(
    request: Request, house: wiring.House, job_id: str, ranks: str = "", cursor: Before = ""
) -> Response:
    values = await _list_values(house, job_id, ranks, cursor)
    return render.page(request, "captures", values)


@router.get("/jobs/{job_id}/captures/live", dependencies=[wiring.STREAM_PLACE])
async def job_captures_live(
    request: Request, house: wiring.House, job_id: str, ranks: str = "", cursor: Before = ""
) -> Response:
    await _list_values(house, job_id, ranks, cursor)
    return live.stream(
        request,
        house,
        (f"job:{job_id}",),
        "captures",
        lambda _: _list_values(house, job_id, ranks, cursor),
    )


async def _values(
    request: Request, house: Services, capture_id: str, chosen: stack_view.Choice, before: str
) -> render.Values:
    capture = await house.captures.get(capture_id)
    asked = words.count(capture.ranks)
    is_taking = capture.state is CaptureState.TAKING
    tree = _EMPTY
    if not is_taking or asked <= TREE_WHILE_TAKING:
        tree = await house.captures.tree(capture_id, native=chosen.native, before=before or None)
    came = sum(part.has_stacks or part.has_entries for part in capture.parts)
    others = await house.captures.of_job(capture.job, limit=20)
    return {
        "title": f"{f'{came}/{asked}' if is_taking else 'Stacks'} · Hangwatch",
        "section": "jobs",
        "capture": capture,
        "asked": asked,
        "answered": came,
        "heard": len(capture.parts),
        "waited_for": house.captures.waited_for(capture_id) if is_taking else {},
        "gaps": gaps(capture.parts),
        "max_gaps": MAX_GAPS,
        "is_taking": is_taking,
        "others": [other for other in others[0] if other.id != capture_id],
        "earlier": await _find(house, tree.before),
        "stacks": stack_view.of(tree, request, chosen, base=f"/captures/{capture_id}"),
    }


async def _find(house: Services, capture_id: str) -> Capture | None:
    try:
        return await house.captures.get(capture_id) if capture_id else None
    except NotFoundError:
        return None


async def _list_values(house: Services, job_id: str, asked: str, cursor: str) -> render.Values:
    job = await house.watch.job(job_id)
    rows, more = await house.captures.of_job(job_id, limit=PAGE_CAPTURES, before=cursor or None)
    return {
        "title": f"Captures of {words.plain(words.short(job.name, 40))} · Hangwatch",
        "section": "jobs",
        "job": job,
        "captures": rows,
        "previous": _previous(rows),
        "more": more,
        "asked": asked,
    }


def _previous(rows: Sequence[Capture]) -> dict[str, str]:
    """Of each capture in a list, newest first, the one that it is best compared with."""
    found = ((row, pairing.before(row, rows[place + 1 :])) for place, row in enumerate(rows))
    return {row.id: earlier.id for row, earlier in found if earlier is not None}


def gaps(parts: Sequence[PartRow]) -> tuple[Gap, ...]:
    """Ranks without what was asked for, together where the reason is the same."""
    grouped: dict[tuple[str, str], list[PartRow]] = {}
    for part in parts:
        if part.reason:
            grouped.setdefault((part.reason, part.remedy), []).append(part)
    return tuple(
        Gap(
            ranks=ranges.text(row.rank for row in rows),
            nodes=tuple(sorted({row.node for row in rows if row.node})),
            pids=tuple(sorted({row.pid for row in rows if row.pid})),
            reason=reason,
            remedy=remedy,
        )
        for (reason, remedy), rows in grouped.items()
    )
