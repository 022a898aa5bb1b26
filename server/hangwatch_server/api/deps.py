"""What only handlers of the API receive: an enroller, and waits that end with their reader."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Annotated, TypeVar

from fastapi import Depends, Request

from hangwatch_server import security

Enroller = Annotated[security.Caller, Depends(security.require("enrol"))]
T = TypeVar("T")


async def while_wanted(request: Request, work: Awaitable[T]) -> T | None:
    """The result of `work`, or None when its caller leaves or the server stops first.

    `work` is then cancelled. Nobody else may read the request's body meanwhile.
    """
    stopping: asyncio.Event = request.app.state.stopping
    task = asyncio.ensure_future(work)
    ends = [asyncio.ensure_future(stopping.wait()), asyncio.ensure_future(_left(request))]
    try:
        await asyncio.wait({task, *ends}, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        for pending in (task, *ends):
            pending.cancel()


async def _left(request: Request) -> None:
    """Until the connection is closed from the other side."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
