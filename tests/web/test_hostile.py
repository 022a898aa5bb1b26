"""Names that jobs choose: shown as text, in order, within the page, whatever they hold."""

from __future__ import annotations

import pytest
from playwright.sync_api import BrowserContext, Page, expect
from tests.web import hostile, preview, scenes
from tests.web.conftest import Site

pytestmark = pytest.mark.web

HIDDEN = "\u202e\u202d\u202b\u200b\ufeff\x07"
LONGEST_TITLE = 200
ADMIN_PAGES = (
    "/settings/tokens",
    "/settings/tokens/t3/revoke",
    "/settings/sessions",
    "/settings/audit",
    "/channels",
    "/channels/ch-odd",
    "/channels/ch-odd/delete",
    "/deliveries",
    "/deliveries/msg_hostile",
    "/silences",
)


@pytest.fixture
def scene() -> scenes.Scene:
    return hostile.scene()


def _check(page: Page, width: int, path: str) -> None:
    expect(page.locator("h1").first).to_be_visible()
    text = page.inner_text("body")
    assert not set(HIDDEN) & set(text), path
    assert page.locator("main script, main img").count() == 0, path
    assert page.evaluate("document.documentElement.scrollWidth") <= width, path
    title = page.title()
    assert title != "taken"
    assert len(title) <= LONGEST_TITLE, path
    assert not set(HIDDEN) & set(title), path


@pytest.mark.parametrize("width", [1440, 390])
def test_every_page_of_a_hostile_job_is_safe_and_fits(page: Page, site: Site, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})

    for path in hostile.JOB_PAGES:
        response = page.goto(site.url + path)

        assert response is not None
        assert response.ok, path
        expect(page.locator("main")).to_contain_text("<script>document.title")
        _check(page, width, path)


def test_administration_shows_what_people_wrote_as_text(
    context: BrowserContext, page: Page, site: Site
) -> None:
    cookie = preview.admin_cookie(site.app)
    context.add_cookies([{"name": "hangwatch_session", "value": cookie, "url": site.url}])

    for path in ADMIN_PAGES:
        page.goto(site.url + path)
        expect(page.locator("main")).to_contain_text('<script>alert("x")</script>')
        _check(page, 1440, path)


def test_a_long_name_does_not_make_a_page_heavy(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/incidents")

    assert len(page.locator(".incidents .cell-job").inner_text()) <= 48
    assert len(page.content()) < 60_000
