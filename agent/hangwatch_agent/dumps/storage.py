"""Touches files that a job names, which may lie on storage that never answers again.

Such a call cannot be ended, only left alone: it gets a daemon thread of its own, which nobody waits
for when the agent stops, and only so many may be under way at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

from hangwatch_agent.errors import DumpError

MAX_VISITS = 64
T = TypeVar("T")
_under_way: set[threading.Thread] = set()


async def visit(call: Callable[[], T]) -> T:
    """The result of `call`; cancelled or not, its thread ends when the storage lets it."""
    _under_way.difference_update([thread for thread in _under_way if not thread.is_alive()])
    if len(_under_way) >= MAX_VISITS:
        raise DumpError("the storage that jobs name for their dumps does not answer")
    loop = asyncio.get_running_loop()
    result: asyncio.Future[T] = loop.create_future()

    def tell(value: T | None, error: Exception | None) -> None:
        if result.done():
            return
        if error is not None:
            result.set_exception(error)
        else:
            result.set_result(value)  # type: ignore[arg-type]  # there is a value without an error

    def run() -> None:
        value, problem = None, None
        try:
            value = call()
        except Exception as error:
            problem = error  # raised where it is waited for
        with contextlib.suppress(RuntimeError):  # the agent has stopped meanwhile
            loop.call_soon_threadsafe(tell, value, problem)

    thread = threading.Thread(target=run, name="dump-file", daemon=True)
    thread.start()
    _under_way.add(thread)
    return await result
