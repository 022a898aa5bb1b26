"""The event stream of a page."""

from __future__ import annotations

from contextlib import closing
from types import SimpleNamespace
from typing import Any

import pytest

from hangwatch_server.bus import MemoryBus
from hangwatch_server.errors import DatabaseError
from hangwatch_server.pages import live, render


def test_an_update_that_was_costly_is_followed_by_a_longer_rest() -> None:
    assert live.pause_s(0.01) == live.SHORTEST_PAUSE_S
    assert live.pause_s(0.5) == 2.0
    assert live.pause_s(60.0) == live.LONGEST_PAUSE_S


def test_a_page_hears_of_its_server_in_time_after_the_longest_rest() -> None:
    """live.js takes a stream that is quiet for 15 s for one that is down."""
    assert live.LONGEST_PAUSE_S + live.BEAT_S < 15.0


def test_what_travels_beside_the_page_has_a_name_that_comes_back() -> None:
    assert live.message("{}", "data", "4f2a") == "event: data\nid: 4f2a\ndata: {}\n\n"
    assert live.message("a\nb") == "data: a\ndata: b\n\n"


@pytest.mark.anyio
async def test_the_first_message_says_how_soon_to_connect_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """htmx passes over a `retry:` that stands alone, with no event and no data beside it."""
    monkeypatch.setattr(render, "fragment", lambda *_: "<p>a page</p>")
    monkeypatch.setattr(live, "pause_s", lambda _: 0.0)
    failures = [DatabaseError("away")]

    async def values(_: Any) -> dict[str, Any]:
        if failures:
            raise failures.pop()
        return {}

    bus = MemoryBus()
    with closing(bus):
        request: Any = SimpleNamespace()
        changes = bus.subscribe(("jobs",))
        messages = live._messages(request, lambda: "", changes, "nodes", values, None)
        bus.publish("jobs", {})
        first, second = await anext(messages), await anext(messages)
        await messages.aclose()

    assert first == "retry: 1000\nevent: missing\ndata: nothing\n\n"
    assert second.startswith("data: <p>a page</p>\n\n")
