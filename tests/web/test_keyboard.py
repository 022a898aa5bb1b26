"""Everything by keyboard alone: from the overview to the culprit's line, filters, menus, forms."""

from __future__ import annotations

import pytest
from playwright.sync_api import BrowserContext, Page, expect
from tests.web import preview
from tests.web.conftest import Site

pytestmark = pytest.mark.web

MOST_TABS = 60


def _tab_to(page: Page, selector: str) -> None:
    """Press Tab until the element has the focus, and see that the focus is drawn there."""
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        if page.evaluate("(it) => document.activeElement?.matches(it) ?? false", selector):
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline != "none", selector
            return
    raise AssertionError(f"{selector} is not reached within {MOST_TABS} tabs")


def test_from_the_overview_to_the_culprits_line(page: Page, site: Site) -> None:
    page.goto(site.url)

    page.keyboard.press("j")
    expect(page.locator("#job-a1b2c3d4e5f6 a").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{site.url}/jobs/a1b2c3d4e5f6")
    _tab_to(page, ".verdict .button.primary")
    page.keyboard.press("Enter")

    expect(page.locator("h1")).to_have_text("Rank 5 holds up 7 ranks")
    expect(page.locator(".culprit-where").first).to_have_text("train.py:88 in __getitem__")


def test_the_first_tab_skips_to_the_content(page: Page, site: Site) -> None:
    page.goto(site.url)

    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")

    expect(page.locator("#main")).to_be_focused()


def test_rows_are_walked_both_ways_and_stop_at_the_ends(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/incidents")
    links = page.locator(".incidents tbody tr")

    page.keyboard.press("k")
    expect(links.last.locator("a").first).to_be_focused()
    page.keyboard.press("j")
    expect(links.last.locator("a").first).to_be_focused()
    page.keyboard.press("k")

    expect(links.nth(-2).locator("a").first).to_be_focused()


def test_help_opens_lists_the_keys_and_closes(page: Page, site: Site) -> None:
    page.goto(site.url)

    page.keyboard.press("?")
    expect(page.locator("#help")).to_be_visible()
    expect(page.locator("#help")).to_contain_text("pause the page")
    page.keyboard.press("Escape")

    expect(page.locator("#help")).to_be_hidden()


def test_incidents_are_filtered_without_a_mouse(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/incidents")

    _tab_to(page, "#filter-node")
    page.keyboard.type("node-b")
    page.keyboard.press("Enter")

    expect(page.locator(".incidents tbody tr")).to_have_count(1)


def test_a_token_is_made_without_a_mouse(context: BrowserContext, page: Page, site: Site) -> None:
    cookie = preview.admin_cookie(site.app)
    context.add_cookies([{"name": "hangwatch_session", "value": cookie, "url": site.url}])
    page.goto(site.url)
    page.keyboard.press("g")
    page.keyboard.press("s")
    expect(page).to_have_url(f"{site.url}/settings")
    _tab_to(page, '.tabs a[href="/settings/tokens"]')
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{site.url}/settings/tokens")

    _tab_to(page, 'input[name="scope"]')
    page.keyboard.press("Space")
    _tab_to(page, 'input[name="name"]')
    page.keyboard.type("dashboard")
    page.keyboard.press("Enter")

    expect(page.locator("h1")).to_have_text("Copy the token now.")


def test_shortcuts_are_silent_while_somebody_types(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/incidents")

    page.locator("#filter-job").focus()
    page.keyboard.type("gpu?p")

    expect(page.locator("#filter-job")).to_have_value("gpu?p")
    expect(page.locator("#help")).to_be_hidden()
    expect(page.locator("#paused-banner")).to_be_hidden()
