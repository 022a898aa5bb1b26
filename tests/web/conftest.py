"""A browser and the preview application for tests of pages; no real server is tested here."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest
import uvicorn
from fastapi import FastAPI
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, expect, sync_playwright
from tests.support import waiting
from tests.support.browser import launch
from tests.web import preview, scenes

DEADLINE_MS = 30_000


class Site:
    """A running preview: its address, its scene, and how to say that something changed."""

    def __init__(self, app: FastAPI, server: uvicorn.Server, port: int) -> None:
        self.app = app
        self.scene: scenes.Scene = app.state.scene
        self.server = server
        self.url = f"http://127.0.0.1:{port}"

    def publish(self, topic: str) -> None:
        """Tell every open page that this changed; safe to call from the test's thread."""
        loop: asyncio.AbstractEventLoop = self.app.state.loop
        loop.call_soon_threadsafe(self.app.state.bus.publish, topic, {})


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    # Deadlines, not measurements: a loaded machine may take its time over a swap.
    expect.set_options(timeout=DEADLINE_MS)
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="session")
def browser(playwright: Playwright) -> Iterator[Browser]:
    launched = launch(playwright)
    yield launched
    launched.close()


@pytest.fixture
def scene() -> scenes.Scene:
    return scenes.everything()


@pytest.fixture
def site(scene: scenes.Scene, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    app = preview.build(scene, monkeypatch.setattr)
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    waiting.until(lambda: server.started, 60, "the preview server starts")
    yield Site(app, server, listening.getsockname()[1])
    app.state.bus.close()  # open streams end, so that the server need not wait for them
    server.should_exit = True
    thread.join(60)
    listening.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    made = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme="light")
    yield made
    made.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A page that fails the test on script errors, console errors and refused content."""
    opened = context.new_page()
    problems: list[str] = []
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on(
        "console",
        lambda message: problems.append(message.text) if message.type == "error" else None,
    )
    yield opened
    assert problems == []
