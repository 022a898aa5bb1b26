"""The delivery log: every message, what became of it, and sending one again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import RedirectResponse

from hangwatch_server import wiring
from hangwatch_server.alerts import people
from hangwatch_server.db import channels as channel_rows
from hangwatch_server.db import deliveries as delivery_rows
from hangwatch_server.errors import NotFoundError
from hangwatch_server.model.alerts import Delivery, DeliveryState
from hangwatch_server.pages import alert_words, render, words
from hangwatch_server.pages.boundary import PageRoute
from hangwatch_server.services import Services

PAGE_DELIVERIES = 50
router = APIRouter(route_class=PageRoute, dependencies=[wiring.OPERATE])


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What the address asks for; each part may be absent."""

    state: DeliveryState | None = None
    channel: str = ""
    incident: str = ""

    @property
    def is_any(self) -> bool:
        return self != Filters()

    def address(self, **changes: str) -> str:
        """The log under these filters, with some of them changed."""
        values = {"state": self.state or "", "channel": self.channel, "incident": self.incident}
        kept = {name: value for name, value in {**values, **changes}.items() if value}
        return f"/deliveries?{urlencode(kept)}" if kept else "/deliveries"


def _filters(
    state: Annotated[DeliveryState | None, Query()] = None,
    channel: Annotated[str, Query(max_length=100)] = "",
    incident: Annotated[str, Query(max_length=64)] = "",
) -> Filters:
    return Filters(state=state, channel=channel, incident=incident)


@router.get("/deliveries")
async def list_deliveries(
    request: Request,
    house: wiring.House,
    asked: Annotated[Filters, Depends(_filters)],
    before: Annotated[str, Query(max_length=255)] = "",
) -> Response:
    rows, more = await delivery_rows.list_page(
        house.db,
        state=asked.state,
        channel=asked.channel or None,
        incident=asked.incident or None,
        limit=PAGE_DELIVERIES,
        before=before or None,
    )
    values = {
        "title": "Deliveries · Hangwatch",
        "section": "alerts",
        "tab": "deliveries",
        "rows": rows,
        "asked": asked,
        "states": tuple(DeliveryState),
        "channels": await channel_rows.list_all(house.db),
        "alert_words": alert_words,
        "is_later_page": bool(before),
        "more": asked.address(before=more) if more else "",
    }
    return render.page(request, "deliveries", values)


@router.get("/deliveries/{delivery_id}")
async def delivery(request: Request, house: wiring.House, delivery_id: str) -> Response:
    found = await _find(house, delivery_id)
    values = {
        "title": "Delivery · Hangwatch",
        "section": "alerts",
        "tab": "deliveries",
        "delivery": found,
        "alert_words": alert_words,
    }
    return render.page(request, "delivery", values)


@router.post("/deliveries/{delivery_id}/redeliver")
async def redeliver(house: wiring.House, caller: wiring.Operator, delivery_id: str) -> Response:
    await people.redeliver(house.db, caller.name, delivery_id)
    house.alerts.worker.wake()
    return RedirectResponse(f"/deliveries/{delivery_id}", status_code=303)


async def _find(house: Services, delivery_id: str) -> Delivery:
    found = await delivery_rows.find(house.db, delivery_id)
    if found is None:
        raise NotFoundError(
            f"Delivery '{words.short(delivery_id, 40)}' is not known. It may be older than the "
            "retention."
        )
    return found
