"""What page handlers receive: the services, and a caller who may read or operate. Wiring only."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends, Request

from hangwatch_server import security
from hangwatch_server.services import Services

NO_NUL = r"^[^\x00]*$"  # Postgres texts cannot hold NUL


def services_of(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


def caller_of(request: Request) -> str:
    """Whoever was let in: what counts as one reader."""
    caller: security.Caller = request.state.caller
    return caller.id


House = Annotated[Services, Depends(services_of)]
READ = Depends(security.require("read"))
OPERATE = Depends(security.require("operate"))
ADMIN = Depends(security.require("admin"))
Admin = Annotated[security.Caller, ADMIN]
Operator = Annotated[security.Caller, OPERATE]
Reader = Annotated[security.Caller, READ]


async def _bundle_place(house: House, caller: Reader) -> AsyncIterator[None]:
    with house.quotas.bundles.place(caller.id):
        yield


BUNDLE_PLACE = Depends(_bundle_place)  # held until the answer is sent


def capture_limit(request: Request, caller: Operator) -> None:
    """Refuse a caller who has asked for many captures in the last minute."""
    security.guard_of(request).capture(caller.id)


CAPTURE_LIMIT = Depends(capture_limit)
