"""The page of one incident: the record of a hang, and what a person may do about it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Form, Query, Request, Response
from fastapi.responses import PlainTextResponse, RedirectResponse
from pydantic import BeforeValidator, Field

from hangwatch_server import ranges, texts, wiring
from hangwatch_server.db import captures as capture_rows
from hangwatch_server.db import incidents as incident_rows
from hangwatch_server.db import moments as moment_rows
from hangwatch_server.errors import NotFoundError
from hangwatch_server.incidents import people
from hangwatch_server.model import (
    ACTIVE_INCIDENTS,
    CaptureSummary,
    Incident,
    Moment,
    PathStep,
    Tree,
    Verdict,
)
from hangwatch_server.pages import (
    alerts_sent,
    bundles,
    commands,
    culprits,
    headline,
    lanes,
    live,
    negotiation,
    pairs,
    render,
    ring,
    sides,
    stack_view,
    story,
    text_page,
    words,
)
from hangwatch_server.pages.boundary import PageRoute
from hangwatch_server.services import Services

LONGEST_SNOOZE = timedelta(days=30)
router = APIRouter(route_class=PageRoute, dependencies=[wiring.READ])

_Rank = Annotated[int, Field(ge=0, le=1_000_000)]
# A field that was emptied asks for no rank.
RankChoice = Annotated[_Rank | None, BeforeValidator(lambda text: text or None), Query()]


@router.get("/incidents/{incident_id}.txt", response_class=PlainTextResponse)
async def incident_text(request: Request, house: wiring.House, incident_id: str) -> str:
    return await _text(request, house, await find(house, incident_id))


@router.get("/incidents/{incident_id}.json")
async def incident_json(house: wiring.House, incident_id: str) -> Incident:
    return await find(house, incident_id)


@router.get("/incidents/{incident_id}/moments.json")
async def incident_moments(house: wiring.House, incident_id: str) -> tuple[Moment, ...]:
    await find(house, incident_id)
    return await moment_rows.of_incident(house.db, incident_id)


@router.get("/incidents/{incident_id}/bundle.zip", dependencies=[wiring.BUNDLE_PLACE])
async def incident_bundle(house: wiring.House, incident_id: str) -> Response:
    return await bundles.response(house, await find(house, incident_id))


@router.get("/incidents/{incident_id}/live", dependencies=[wiring.STREAM_PLACE])
async def incident_live(
    request: Request,
    house: wiring.House,
    incident_id: str,
    chosen: stack_view.Chosen,
    rank: RankChoice = None,
) -> Response:
    incident = await find(house, incident_id)
    topics = (f"incident:{incident_id}", f"job:{incident.job}")
    return live.stream(
        request,
        house,
        topics,
        "incident",
        lambda page: _values(page, house, incident_id, rank, chosen),
    )


@router.get("/incidents/{incident_id}", response_model=None)
async def incident(
    request: Request,
    house: wiring.House,
    incident_id: str,
    chosen: stack_view.Chosen,
    rank: RankChoice = None,
) -> Response:
    form = negotiation.wanted(request)
    if form == "json":
        document = bundles.document(await find(house, incident_id))
        return Response(document, media_type="application/json")
    if form == "text":
        return PlainTextResponse(await _text(request, house, await find(house, incident_id)))
    values = await _values(request, house, incident_id, rank, chosen)
    return render.page(request, "incident", values)


@router.post("/incidents/{incident_id}/acknowledge")
async def acknowledge(
    house: wiring.House,
    caller: wiring.Operator,
    incident_id: str,
    comment: Annotated[str, Form(max_length=2000, pattern=texts.NO_NUL)] = "",
) -> Response:
    await people.acknowledge(house.db, house.bus, incident_id, caller.name, comment.strip())
    return _back(incident_id)


@router.post("/incidents/{incident_id}/comments")
async def comment(
    house: wiring.House,
    caller: wiring.Operator,
    incident_id: str,
    text: Annotated[str, Form(min_length=1, max_length=2000, pattern=texts.NO_NUL)],
) -> Response:
    if text.strip():
        await people.comment(house.db, house.bus, incident_id, caller.name, text.strip())
    return _back(incident_id)


@router.post("/incidents/{incident_id}/snooze")
async def snooze(
    house: wiring.House,
    caller: wiring.Operator,
    incident_id: str,
    minutes: Annotated[int | None, Form(ge=1, le=24 * 60)] = None,
) -> Response:
    """Without minutes until the job ends."""
    length = LONGEST_SNOOZE if minutes is None else timedelta(minutes=minutes)
    await people.snooze(
        house.db,
        house.bus,
        incident_id,
        caller.name,
        datetime.now(UTC) + length,
        to_end=minutes is None,
    )
    return _back(incident_id)


def _back(incident_id: str) -> Response:
    return RedirectResponse(f"/incidents/{incident_id}", status_code=303)


async def find(house: Services, incident_id: str) -> Incident:
    found = await incident_rows.find(house.db, incident_id)
    if found is None:
        raise NotFoundError(
            f"Incident '{words.short(incident_id, 40)}' is not known. It may be older than the "
            "retention."
        )
    return found


async def _text(request: Request, house: Services, incident: Incident) -> str:
    stacks = await house.captures.incident_text(incident.id) if incident.captures else ""
    return text_page.of_incident(
        incident, stacks, f"{str(request.base_url).rstrip('/')}/incidents/{incident.id}"
    )


async def _values(
    request: Request,
    house: Services,
    incident_id: str,
    rank: int | None,
    chosen: stack_view.Choice,
) -> render.Values:
    incident = await find(house, incident_id)
    tree = await house.captures.incident_tree(incident_id, native=chosen.native)
    taken = await capture_rows.summaries(house.db, incident_id)
    moment = await moment_rows.newest(house.db, incident_id)
    return {
        **_heading(incident),
        **_causes(incident.verdict, tree, moment),
        **_evidence(incident, taken, moment),
        **await alerts_sent.of_incident(house, incident, datetime.now(UTC)),
        "path_steps": await _path(house, incident, rank),
        "rank": rank,
        "ring": ring.of_cycle(incident.verdict.cycle),
        "sides": sides.of(incident.verdict.sides),
        "stacks": stack_view.of(
            tree,
            request,
            chosen,
            base=f"/incidents/{incident_id}",
            culprits=incident.verdict.culprit_ranks,
        ),
        "commands": commands.of_incident(incident, str(request.base_url), moment),
    }


def _heading(incident: Incident) -> render.Values:
    is_active = incident.state in ACTIVE_INCIDENTS
    heading = words.plain(headline.of_incident(incident))
    name = words.plain(words.short(incident.job_name, 40))
    return {
        "title": f"{'▲' if is_active else '✓'} {name}: {heading}",
        "section": "incidents",
        "incident": incident,
        "verdict": incident.verdict,
        "heading": heading,
        "tally": headline.tally(incident.verdict, is_over=not is_active),
        "is_seen_only": headline.is_seen_only(incident.verdict),
        "is_active": is_active,
    }


def _causes(verdict: Verdict, tree: Tree, moment: Moment | None) -> render.Values:
    """The cards of the main cause, and each other cause with its own."""
    of_others = [set(ranges.parse(cause.culprit_ranks)) for cause in verdict.causes]
    own = {culprit.rank for culprit in verdict.culprits}.difference(*of_others)
    return {
        "cards": culprits.of(verdict.culprits, own, tree, moment),
        "causes": [
            (cause, culprits.of(verdict.culprits, named, tree, moment))
            for cause, named in zip(verdict.causes, of_others, strict=True)
        ],
        "unnamed": max(0, words.count(verdict.culprit_ranks) - len(verdict.culprits)),
    }


def _evidence(
    incident: Incident, taken: Sequence[CaptureSummary], moment: Moment | None
) -> render.Values:
    found = moment.lanes if moment is not None else ()
    return {
        "moment": moment,
        "swimlanes": lanes.of_lanes(found, [words.count(lane.ranks) for lane in found]),
        "pair_rows": pairs.of_pairs(moment.pairs if moment is not None else ()),
        "signs": moment.nodes if moment is not None else (),
        "captures": taken,
        "story": story.of_incident(incident, taken),
    }


async def _path(house: Services, incident: Incident, rank: int | None) -> tuple[PathStep, ...]:
    """Of the rank asked for, else the verdict's own, else of the first rank that waits."""
    if rank is None and incident.verdict.path:
        return incident.verdict.path
    if rank is None and incident.verdict.waiting:
        rank = ranges.parse(incident.verdict.waiting)[0]
    return () if rank is None else await house.watch.incident_path(incident, rank)
