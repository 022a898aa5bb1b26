"""Server-sent events: what changed, as it changes. The state is read from the other calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent

from hangwatch_server import security, wiring
from hangwatch_server.api import examples
from hangwatch_server.security import bound

# A stream ends now and then, and the browser opens another: so a revoked token does not listen on.
LONGEST_STREAM_S = 900
RECONNECT_MS = 1000
router = APIRouter(tags=["events"], dependencies=[wiring.READ])

Subject = Annotated[
    str | None, Query(max_length=64, description="Only changes of the one with this id.")
]


async def _own(
    request: Request, job: Subject = None, incident: Subject = None, capture: Subject = None
) -> None:
    """A caller of some jobs hears of what is theirs, and names it."""
    names = security.jobs_of(request)
    if not names:
        return
    if not (job or incident or capture):
        raise security.ForbiddenError(
            "this token is for some jobs only, and hears of one at a time: add ?job=ID"
        )
    await bound.check(request, names, job=job, incident=incident, capture=capture)


@router.get(
    "/events",
    response_class=EventSourceResponse,
    dependencies=[wiring.STREAM_PLACE],
    summary="Server-sent events: which job, incident, capture or node changed",
    responses=examples.text(
        'event: job\ndata: {"job": "b3f1c07a9d24"}\n', media_type="text/event-stream"
    ),
)
@security.for_bound_callers
async def events(
    house: wiring.House,
    _: Annotated[None, Depends(_own)],
    job: Subject = None,
    incident: Subject = None,
    capture: Subject = None,
) -> AsyncIterator[ServerSentEvent]:
    with house.bus.subscribe(_topics(job, incident, capture)) as subscription:
        yield ServerSentEvent(event="open", data={}, retry=RECONNECT_MS)
        try:
            async with asyncio.timeout(LONGEST_STREAM_S):
                async for event in subscription:
                    kind = event.topic.partition(":")[0]
                    yield ServerSentEvent(event=kind, id=str(event.number), data=dict(event.data))
        except TimeoutError:
            return


def _topics(job: str | None, incident: str | None, capture: str | None) -> tuple[str, ...]:
    """Without a filter, all that lists show: any job, any node."""
    chosen = (("job", job), ("incident", incident), ("capture", capture))
    topics = tuple(f"{kind}:{name}" for kind, name in chosen if name)
    topics += (f"verdict:{job}",) if job else ()
    return topics or ("jobs", "nodes")
