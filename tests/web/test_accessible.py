"""axe-core over every page in both themes: no serious or critical finding, contrast included."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from tests.support import left_behind
from tests.web import hangs, preview, scenes
from tests.web.conftest import Site
from tests.web.test_offline import give

from hangwatch_server.offline import File

pytestmark = pytest.mark.web

AXE = (Path(__file__).parent / "vendor/axe-core-4.14.1/axe.min.js").read_text(encoding="utf-8")
RUN = "only => axe.run(document, {resultTypes: ['violations'], ...(only && {runOnly: only})})"
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
    "/incidents/inc-stalled",
    "/incidents/inc-pipeline-recv",
    "/incidents/inc-three-causes",
    "/incidents/inc-ended",
    "/incidents/inc-hostile",
    "/incidents/inc-hung/stacks",
    "/captures/cap-hung",
    "/captures/cap-taking",
    "/captures/cap-after/compare?before=cap-before",
    "/nodes",
    "/nodes/node-b",
    "/nodes/node-g",
    "/channels",
    "/channels/new?kind=webhook",
    "/channels/ch-slack",
    "/channels/ch-robots/delete",
    "/deliveries",
    "/deliveries?state=failed",
    "/deliveries/msg_reminder",
    "/silences?job=gpt-7b",
    "/incidents/inc-hung/acknowledge",
    "/incidents/inc-hung/snooze",
    "/settings",
    "/settings/tokens",
    "/settings/tokens/t2/revoke",
    "/settings/audit",
    "/offline",
    "/login",
    "/jobs/nothere",
)
LOOKS: tuple[tuple[Literal["light", "dark"], int], ...] = (("light", 1440), ("dark", 390))
# What another theme or width can change of a page that was looked at in whole.
LOOKS_ALONE = ("color-contrast", "scrollable-region-focusable")


@pytest.fixture
def scene() -> scenes.Scene:
    return hangs.everything()


def _findings(page: Page, only: Sequence[str] = ()) -> list[str]:
    """What axe finds; its source comes by the debugger, which the content policy does not bind."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)
    result: dict[str, Any] = page.evaluate(RUN, list(only) or None)
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


def _found_in_each_look(page: Page) -> dict[str, list[str]]:
    """Findings by theme; a page is loaded once and takes the other theme and width as it stands."""
    found: dict[str, list[str]] = {}
    for theme, width in LOOKS:
        page.emulate_media(color_scheme=theme)
        page.set_viewport_size({"width": width, "height": 900})
        found[theme] = _findings(page, LOOKS_ALONE if found else ())
    return found


def test_no_page_has_a_grave_finding(browser: Browser, site: Site) -> None:
    context = _open(browser, site, "light", 1440)
    page = context.new_page()
    found: dict[str, list[str]] = {}

    for path in PAGES:
        page.goto(site.url + path)
        expect(page.locator("h1").first).to_be_visible()
        found.update({f"{path} {look}": each for look, each in _found_in_each_look(page).items()})

    context.close()
    assert {path: findings for path, findings in found.items() if findings} == {}


def test_the_report_of_files_has_no_grave_finding(browser: Browser, site: Site) -> None:
    context = _open(browser, site, "light", 1440)
    page = context.new_page()
    broken = File(name="all.zip", data=b"PK\x03\x04rest")
    give(page, site, [*left_behind.dumps(), left_behind.stacks(2), broken])
    expect(page.locator(".offline-heading")).to_be_visible()

    assert _found_in_each_look(page) == {"light": [], "dark": []}
    context.close()


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
    page.get_by_label("viewer").check()
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
    page.evaluate("document.querySelector('.foot').append(document.createElement('button'))")

    assert any(line.startswith("button-name") for line in _findings(page))
