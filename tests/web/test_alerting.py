"""Pages of alerting in a browser: what answers in place, and what a hostile name does there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.web import hangs, preview, scenes
from tests.web.conftest import Site

pytestmark = pytest.mark.web


@pytest.fixture
def scene() -> scenes.Scene:
    return hangs.everything()


@pytest.fixture
def page(browser: Browser, site: Site) -> Iterator[Page]:
    """An administrator's."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    cookie = preview.admin_cookie(site.app)
    context.add_cookies([{"name": "hangwatch_session", "value": cookie, "url": site.url}])
    found = context.new_page()
    found.on("dialog", lambda dialog: pytest.fail(f"a name opened a dialog: {dialog.message}"))
    yield found
    context.close()


def test_the_test_button_answers_in_its_row(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/channels")
    row = page.locator("#channel-ch-slack")

    row.get_by_role("button", name="Send a test").click()

    expect(row.get_by_role("status")).to_contain_text("arrived")
    assert page.url == f"{site.url}/channels"


def test_a_hostile_answer_is_text(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/channels")
    row = page.locator("#channel-ch-odd")

    row.get_by_role("button", name="Send a test").click()

    expect(row.get_by_role("status")).to_contain_text('<script>alert("x")</script>')


def test_the_preview_of_a_silence_follows_what_is_typed(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/silences")
    preview_box = page.locator("#preview")
    expect(preview_box).to_contain_text("Give a pattern")

    page.get_by_label("Pattern, row 1").fill("gpt-*")

    expect(preview_box).to_contain_text("open incidents now")
    expect(preview_box.get_by_role("link", name="gpt-7b").first).to_be_visible()


def test_an_incident_tells_who_was_told_and_what_comes_next(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/incidents/inc-hung")
    alerts = page.locator("#alerts")

    expect(alerts).to_contain_text("silenced by ada: storage upgrade on rack 4")
    expect(alerts.locator(".is-ahead")).to_contain_text("unless somebody acknowledges it")
    alerts.get_by_role("link", name="Silence this job").click()
    expect(page.get_by_label("Pattern, row 1")).to_have_value("gpt-7b")


def test_without_a_channel_an_incident_says_that_nobody_is_told(page: Page, site: Site) -> None:
    site.scene.is_without_alerts = True

    page.goto(f"{site.url}/incidents/inc-hung")

    expect(page.locator("#alerts")).to_contain_text("Nobody is told: there is no channel.")


def test_a_link_of_an_alert_acknowledges_only_when_asked_again(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/incidents/inc-hung/acknowledge")
    expect(page.get_by_role("heading", name="Do you look after this?")).to_be_visible()
    page.goto(f"{site.url}/incidents/inc-hung")
    expect(page.locator(".incident-head")).to_contain_text("unacknowledged")

    page.goto(f"{site.url}/incidents/inc-hung/acknowledge")
    page.get_by_role("button", name="Acknowledge").click()

    expect(page.locator(".incident-head")).to_contain_text("acknowledged by ada")
    page.goto(f"{site.url}/incidents/inc-hung/acknowledge")
    expect(page.get_by_role("heading", name="ada looks after it already.")).to_be_visible()
