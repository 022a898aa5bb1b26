"""A browser and the preview application for tests of pages; no real server is tested here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, expect, sync_playwright
from tests.support.browser import launch
from tests.web import preview, scenes, serving

DEADLINE_MS = 30_000


class Site:
    """A running preview: its address, its scene, and how to say that something changed."""

    def __init__(self, served: serving.Served, scene: scenes.Scene) -> None:
        self.app, self.url = served.app, served.url
        self.publish, self.end_streams = served.publish, served.end_streams
        self.scene = scene


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


@pytest.fixture(scope="session")
def served() -> Iterator[serving.Served]:
    """One for all tests: its routes and templates take a second to make."""
    with serving.running() as found:
        yield found


@pytest.fixture
def site(
    served: serving.Served, scene: scenes.Scene, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Site]:
    preview.show(served.app, scene, monkeypatch.setattr)
    yield Site(served, scene)
    served.end_streams()


@pytest.fixture
def context(browser: Browser, site: Site) -> Iterator[BrowserContext]:
    """A browser's window on the site; closed before the site stops to answer."""
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
