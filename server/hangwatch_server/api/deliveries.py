"""Deliveries: what was said where, how each try went, and the way to say it again."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from hangwatch_server import wiring
from hangwatch_server.alerts import people
from hangwatch_server.api import examples, once, paging
from hangwatch_server.db import deliveries as delivery_rows
from hangwatch_server.errors import NotFoundError
from hangwatch_server.model.alerts import Delivery, DeliveryState, DeliverySummary

router = APIRouter(
    prefix="/deliveries", tags=["alerts"], dependencies=[wiring.READ], route_class=once.OnceRoute
)


@router.get(
    "",
    summary="List messages to channels, newest first",
    responses=examples.page(examples.DELIVERY_SUMMARY),
)
async def list_deliveries(
    request: Request,
    response: Response,
    house: wiring.House,
    state: DeliveryState | None = None,
    channel: Annotated[
        str | None, Query(max_length=100, description="Id or whole name of their channel.")
    ] = None,
    incident: Annotated[
        str | None, Query(max_length=64, description="Id of the incident they are about.")
    ] = None,
    limit: paging.Limit = 50,
    cursor: paging.Cursor = None,
) -> paging.Page[DeliverySummary]:
    rows, after = await delivery_rows.list_page(
        house.db, state=state, channel=channel, incident=incident, limit=limit, before=cursor
    )
    return paging.page(request, response, rows, after)


@router.get(
    "/{delivery_id}",
    summary="One message with every try to send it",
    responses=examples.of(examples.DELIVERY),
)
async def delivery(house: wiring.House, delivery_id: str) -> Delivery:
    found = await delivery_rows.find(house.db, delivery_id)
    if found is None:
        raise NotFoundError(
            f"delivery '{delivery_id}' is not known: it may be older than the retention; list "
            "them with GET /api/v1/deliveries"
        )
    return found


@router.post(
    "/{delivery_id}/redeliver",
    status_code=202,
    dependencies=[once.KEY],
    summary="Send it again, with the same id",
    responses=examples.of(examples.DELIVERY, status=202),
)
async def redeliver(house: wiring.House, caller: wiring.Operator, delivery_id: str) -> Delivery:
    found = await people.redeliver(house.db, caller.name, delivery_id)
    house.alerts.worker.wake()
    return found
