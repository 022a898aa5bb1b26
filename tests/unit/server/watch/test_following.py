"""What is shown of a job that another server owns, and a task that ends with the server."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from hangwatch_server.bus import MemoryBus
from hangwatch_server.watch.following import Following

pytestmark = pytest.mark.anyio


async def test_closed_bus_does_not_keep_the_event_loop_busy() -> None:
    bus = MemoryBus()
    following = Following(cast(Any, None), bus, cast(Any, None))  # nothing is followed: never asked
    task = asyncio.create_task(following.run(lambda job: None))
    await asyncio.sleep(0)

    bus.close()
    for _ in range(20):
        await asyncio.sleep(0)

    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_job_that_is_left_has_no_verdict_to_show() -> None:
    following = Following(cast(Any, None), MemoryBus(), cast(Any, None))
    following.follow("job")
    following.leave("job")

    assert following.verdict("job") is None
