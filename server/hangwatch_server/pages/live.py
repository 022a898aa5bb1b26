"""The event stream of a page: when something it shows changes, its changing part is rendered again.

One stream for each open page. A quiet page still gets a `beat` so that its script can tell a
quiet server from a dead line. Nothing is computed here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

from fastapi import Request
from fastapi.responses import StreamingResponse

from hangwatch_server.bus import Subscription
from hangwatch_server.errors import DatabaseError, HangwatchError
from hangwatch_server.pages import packing, pieces, render
from hangwatch_server.services import Services

# A person cannot read faster, and a thousand ranks can change in one second.
SHORTEST_PAUSE_S = 1.0
# What is costly to make is made less often: many open pages must not keep agents waiting.
COSTS_PAUSED = 4
LONGEST_PAUSE_S = 4.0
BEAT_S = 5.0
# A session may be revoked while a page stays open: the browser then connects, and is asked, again.
LONGEST_STREAM_S = 600.0
RETRY_MS = 1000
NOTHING = "nothing"  # is missing: an event without data would not be one
_MEDIA_TYPE = "text/event-stream"

Values = Callable[[Request], Awaitable[render.Values]]
# What travels beside the page, "" for nothing, and a name for what its reader has by then.
Beside = Callable[[render.Values], tuple[str, str]]
_log = logging.getLogger("hangwatch.pages")


def stream(
    request: Request,
    services: Services,
    topics: Iterable[str],
    name: str,
    values: Values,
    beside: Beside | None = None,
) -> StreamingResponse:
    """Answer with the stream of the page `name`, rendered again on events of `topics`.

    A stream has begun with status 200: callers look for the page's subject first, and their routes
    take a place among all streams.
    What `beside` says of the same values travels in events of their own, named `data`. Their id
    comes back as `Last-Event-ID` when the reader connects again.
    """
    subscription = services.bus.subscribe(topics)
    messages = _messages(request, services.missing, subscription, name, values, beside)
    headers = {"cache-control": "no-store", "x-accel-buffering": "no", "vary": "accept-encoding"}
    if not packing.is_wanted(request):
        return StreamingResponse(messages, media_type=_MEDIA_TYPE, headers=headers)
    headers["content-encoding"] = "gzip"
    return StreamingResponse(packing.packed(messages), media_type=_MEDIA_TYPE, headers=headers)


def message(text: str, event: str = "", name: str = "") -> str:
    """One server-sent event; text of several lines travels as several `data:` lines."""
    head = (f"event: {event}\n" if event else "") + (f"id: {name}\n" if name else "")
    return head + "".join(f"data: {line}\n" for line in text.splitlines()) + "\n"


async def _messages(
    request: Request,
    lacks: Callable[[], str],
    subscription: Subscription,
    name: str,
    values: Values,
    beside: Beside | None,
) -> AsyncIterator[str]:
    # Part of the first message: htmx reads it of none that holds nothing else.
    head = f"retry: {RETRY_MS}\n"
    sieve, missing = pieces.Sieve(), None
    loop = asyncio.get_running_loop()
    end_s = loop.time() + LONGEST_STREAM_S
    with subscription:
        while loop.time() < end_s:
            begun_s = loop.time()
            if missing != lacks():
                missing = lacks()
                yield head + message(missing or NOTHING, "missing")
                head = ""
            try:
                found = await values(request)
            except DatabaseError:
                found = None  # without a beat, the page says by itself that it is old
            except HangwatchError as error:
                yield message(str(error), "gone")
                return
            if found is not None:
                told, held = beside(found) if beside else ("", "")
                if told:
                    yield head + message(told, "data", held)
                    head = ""
                fragment = render.fragment(request, name, found)
                yield head + _fresh(sieve.changed(fragment, loop.time()))
                head = ""
            await asyncio.sleep(pause_s(loop.time() - begun_s))
            if not await _wait(subscription):
                return


def _fresh(text: str) -> str:
    """What is new, and a sign of life."""
    return (message(text) if text else "") + message("beat", "beat")


def pause_s(cost_s: float) -> float:
    """How long to rest after an update that took so long to make."""
    return min(LONGEST_PAUSE_S, max(SHORTEST_PAUSE_S, COSTS_PAUSED * cost_s))


async def _wait(subscription: Subscription) -> bool:
    """Until the next event or beat, whichever is first; False when the server is about to stop."""
    try:
        async with asyncio.timeout(BEAT_S - SHORTEST_PAUSE_S):
            await anext(subscription)
            subscription.skip()  # one look tells them all
    except TimeoutError:
        return True
    except StopAsyncIteration:
        return False
    return True
