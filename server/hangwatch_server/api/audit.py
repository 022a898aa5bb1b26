"""The audit trail: who captured, acknowledged, snoozed, deleted or changed tokens."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from hangwatch_server import wiring
from hangwatch_server.api import examples, paging
from hangwatch_server.db import audit

router = APIRouter(prefix="/audit", tags=["administration"], dependencies=[wiring.ADMIN])


@router.get("", summary="What people did, newest first", responses=examples.page(examples.AUDIT))
async def list_audit(
    request: Request,
    response: Response,
    house: wiring.House,
    limit: paging.Limit = 100,
    cursor: paging.Cursor = None,
) -> paging.Page[audit.AuditRow]:
    rows, after = await audit.list_page(house.db, limit=limit, before=cursor)
    return paging.page(request, response, rows, after)
