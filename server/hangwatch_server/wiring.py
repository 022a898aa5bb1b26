"""What handlers of the API and of the pages receive alike: the services, callers with a scope, and
places among calls that are counted. Wiring only.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends, Request

from hangwatch_server import security
from hangwatch_server.services import Services


def services_of(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


House = Annotated[Services, Depends(services_of)]
READ = Depends(security.require("read"))
OPERATE = Depends(security.require("operate"))
ADMIN = Depends(security.require("admin"))
Reader = Annotated[security.Caller, READ]
Operator = Annotated[security.Caller, OPERATE]
Admin = Annotated[security.Caller, ADMIN]


def _capture_limit(request: Request, caller: Operator) -> None:
    """Refuse a caller who has asked for many captures in the last minute."""
    security.guard_of(request).capture(caller.id)


async def _stream_place(house: House, caller: Reader) -> AsyncIterator[None]:
    with house.quotas.streams.place(caller.id):
        yield


async def _bundle_place(house: House, caller: Reader) -> AsyncIterator[None]:
    with house.quotas.bundles.place(caller.id):
        yield


CAPTURE_LIMIT = Depends(_capture_limit)
# Held until the answer is sent, or its reader is gone.
STREAM_PLACE = Depends(_stream_place)
BUNDLE_PLACE = Depends(_bundle_place)
