"""What handlers receive: the services, and callers with a scope. Wiring only."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Annotated, TypeVar

from fastapi import Depends, Request

from hangwatch_server import security
from hangwatch_server.services import Services

T = TypeVar("T")


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
Enroller = Annotated[security.Caller, Depends(security.require("enrol"))]


def capture_limit(request: Request, caller: Operator) -> None:
    """Refuse a caller who has asked for many captures in the last minute."""
    security.guard_of(request).capture(caller.id)


CAPTURE_LIMIT = Depends(capture_limit)


async def _stream_place(house: House, caller: Reader) -> AsyncIterator[None]:
    with house.quotas.streams.place(caller.id):
        yield


async def _bundle_place(house: House, caller: Reader) -> AsyncIterator[None]:
    with house.quotas.bundles.place(caller.id):
        yield


# Held until the answer is sent.
STREAM_PLACE = Depends(_stream_place)
BUNDLE_PLACE = Depends(_bundle_place)


def stopping_of(request: Request) -> asyncio.Event:
    """Set when the server has been asked to stop: whoever waits answers now."""
    stopping: asyncio.Event = request.app.state.stopping
    return stopping


Stopping = Annotated[asyncio.Event, Depends(stopping_of)]


async def unless_stopping(stopping: asyncio.Event, work: Awaitable[T]) -> T | None:
    """The result of `work`, or None when the server stops first; `work` is then cancelled."""
    task = asyncio.ensure_future(work)
    stop = asyncio.ensure_future(stopping.wait())
    try:
        await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        stop.cancel()
        task.cancel()
