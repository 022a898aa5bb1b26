"""The list of incidents: what is open, and every hang before it, by state, job, node and time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request, Response

from hangwatch_server import security, wiring
from hangwatch_server.db import incidents as incident_rows
from hangwatch_server.model import ACTIVE_INCIDENTS, SHOWN_INCIDENTS, IncidentState
from hangwatch_server.pages import headline, live, render
from hangwatch_server.pages.boundary import PageRoute
from hangwatch_server.services import Services

PAGE_INCIDENTS = 50
router = APIRouter(route_class=PageRoute, dependencies=[wiring.READ])


class Period(StrEnum):
    """How far back the list reaches."""

    ALL = ""
    DAY = "24h"
    WEEK = "7d"
    MONTH = "30d"


LENGTHS = {
    Period.DAY: timedelta(days=1),
    Period.WEEK: timedelta(days=7),
    Period.MONTH: timedelta(days=30),
}
PERIODS = {
    Period.ALL: "any time",
    Period.DAY: "24 hours",
    Period.WEEK: "7 days",
    Period.MONTH: "30 days",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What the address asks for; each part may be absent."""

    state: IncidentState | None = None
    job: str = ""
    node: str = ""
    opened: Period = Period.ALL

    @property
    def is_any(self) -> bool:
        return self != Filters()

    def address(self, **changes: str) -> str:
        """The list under these filters, with some of them changed."""
        values = {"state": self.state or "", "job": self.job, "node": self.node}
        kept = {**values, "opened": self.opened.value, **changes}
        query = urlencode({name: value for name, value in kept.items() if value})
        return f"/incidents?{query}" if query else "/incidents"

    def since(self, now: datetime) -> datetime | None:
        length = LENGTHS.get(self.opened)
        return None if length is None else now - length


def _filters(
    state: Annotated[IncidentState | None, Query()] = None,
    job: Annotated[str, Query(max_length=4096)] = "",
    node: Annotated[str, Query(max_length=255)] = "",
    opened: Annotated[Period, Query()] = Period.ALL,
) -> Filters:
    return Filters(state=state, job=job.strip(), node=node.strip(), opened=opened)


Asked = Annotated[Filters, Depends(_filters)]
Before = Annotated[str, Query(max_length=255)]


@router.get("/incidents")
@security.for_bound_callers
async def list_incidents(
    request: Request, house: wiring.House, asked: Asked, before: Before = ""
) -> Response:
    return render.page(request, "incidents", await _values(request, house, asked, before))


@router.get("/incidents/live", dependencies=[wiring.STREAM_PLACE])
@security.for_bound_callers
async def list_live(
    request: Request, house: wiring.House, asked: Asked, before: Before = ""
) -> Response:
    return live.stream(
        request, house, ("jobs",), "incidents", lambda page: _values(page, house, asked, before)
    )


async def _values(request: Request, house: Services, asked: Filters, before: str) -> render.Values:
    names = security.jobs_of(request)
    rows, more = await incident_rows.list_page(
        house.db,
        states=(asked.state,) if asked.state else SHOWN_INCIDENTS,
        job=asked.job or None,
        node=asked.node or None,
        since=asked.since(datetime.now(UTC)),
        limit=PAGE_INCIDENTS,
        before=before or None,
        names=names,
    )
    active = await incident_rows.count_confirmed(house.db, names)
    return {
        "title": f"{f'▲ {active} open' if active else 'Incidents'} · Hangwatch",
        "section": "incidents",
        "as_json": f"/api/v1{asked.address(opened='')}",
        "incidents": rows,
        "headings": {row.id: headline.of_incident(row) for row in rows},
        "calls": {row.id: headline.beside(row) for row in rows},
        "is_active": {row.id: row.state in ACTIVE_INCIDENTS for row in rows},
        "active": active,
        "last": None if active else await incident_rows.last_ended(house.db, names),
        "states": SHOWN_INCIDENTS,
        "periods": PERIODS,
        "asked": asked,
        "is_later_page": bool(before),
        "more": asked.address(before=more) if more else "",
    }
