"""axe-core over every page in both themes: no serious or critical finding, contrast included."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from tests.web import preview, scenes
from tests.web.conftest import Site

pytestmark = pytest.mark.web

AXE = (Path(__file__).parent / "vendor/axe-core-4.14.1/axe.min.js").read_text(encoding="utf-8")
RUN = "() => axe.run(document, {resultTypes: ['violations']})"
GRAVE = ("serious", "critical")
PAGES = (
    "/",
    "/?q=nothing-like-it",
    "/jobs/a1b2c3d4e5f6",
    "/jobs/f6a1b2c3d4e5",
    "/jobs/e5f6a1b2c3d4",
    "/jobs/a1b2c3d4e5f6/captures",
    "/jobs/a1b2c3d4e5f6/ranks/5",
    "/jobs/a1b2c3d4e5f6/ranks/1",
    "/jobs/3a4b5c6d7e00/delete",
    "/incidents",
    "/incidents?state=ended",
    "/incidents/inc-hung",
    "/incidents/inc-mismatch",
    "/incidents/inc-deadlock",
    "/incidents/inc-over",
    "/incidents/inc-hostile",
    "/incidents/inc-hung/stacks",
    "/captures/cap-hung",
    "/captures/cap-taking",
    "/nodes",
    "/nodes/node-b",
    "/nodes/node-g",
    "/settings",
    "/settings/tokens",
    "/settings/tokens/t2/revoke",
    "/settings/audit",
    "/login",
    "/jobs/nothere",
)


def _findings(page: Page) -> list[str]:
    page.evaluate(AXE)  # by the debugger, which the content policy does not bind
    result: dict[str, Any] = page.evaluate(RUN)
    return [
        f"{item['id']} ({item['impact']}): {item['nodes'][0]['html'][:160]}"
        for item in result["violations"]
        if item["impact"] in GRAVE
    ]


def _open(
    browser: Browser, site: Site, theme: Literal["light", "dark"], width: int
) -> BrowserContext:
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=theme, reduced_motion="reduce"
    )
    cookie = preview.admin_cookie(site.app)
    context.add_cookies([{"name": "hangwatch_session", "value": cookie, "url": site.url}])
    return context


@pytest.mark.parametrize(("theme", "width"), [("light", 1440), ("dark", 390)])
def test_no_page_has_a_grave_finding(
    browser: Browser, site: Site, theme: Literal["light", "dark"], width: int
) -> None:
    context = _open(browser, site, theme, width)
    page = context.new_page()
    found: dict[str, list[str]] = {}

    for path in PAGES:
        page.goto(site.url + path)
        expect(page.locator("h1").first).to_be_visible()
        found[path] = _findings(page)

    context.close()
    assert {path: findings for path, findings in found.items() if findings} == {}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_help_the_banner_and_a_new_token_have_no_grave_finding(
    browser: Browser, site: Site, theme: Literal["light", "dark"]
) -> None:
    context = _open(browser, site, theme, 1440)
    page = context.new_page()
    page.goto(f"{site.url}/jobs/a1b2c3d4e5f6")
    page.keyboard.press("p")
    expect(page.locator("#paused-banner")).to_be_visible()
    assert _findings(page) == []

    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    assert _findings(page) == []

    page.goto(f"{site.url}/settings/tokens")
    page.get_by_label("read").check()
    page.get_by_label("Name").fill("dashboard")
    page.get_by_role("button", name="Create token").click()
    expect(page.locator("h1")).to_have_text("Copy the token now.")
    assert _findings(page) == []
    context.close()


class TestWithoutJobs:
    """The first page of a new server."""

    @pytest.fixture
    def scene(self) -> scenes.Scene:
        return scenes.Scene()

    @pytest.mark.parametrize("theme", ["light", "dark"])
    def test_the_first_pages_have_no_grave_finding(
        self, browser: Browser, site: Site, theme: Literal["light", "dark"]
    ) -> None:
        context = _open(browser, site, theme, 1440)
        page = context.new_page()

        for path in ("/", "/incidents", "/nodes"):
            page.goto(site.url + path)
            assert _findings(page) == [], path
        context.close()


def test_axe_finds_what_is_wrong(page: Page, site: Site) -> None:
    """That nothing is found elsewhere means something only if something can be found."""
    page.goto(site.url)
    page.evaluate("document.querySelector('.headline h1').innerHTML = '<button></button>'")

    assert any(line.startswith("button-name") for line in _findings(page))
