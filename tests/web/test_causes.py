"""What a verdict holds is on the page: each cause has a heading that is true of it."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect
from tests.web import causes, scenes
from tests.web.conftest import Site

pytestmark = pytest.mark.web

NAMES = (
    "skip-late",
    "plain-torchrun",
    "plain-inside",
    "nccl-ras",
    "fallen-gpu",
    "again-and-again",
    "two-causes",
    "order-three",
)


@pytest.fixture
def scene() -> scenes.Scene:
    return causes.everything()


def test_each_cause_fits_a_phone(page: Page, site: Site) -> None:
    page.set_viewport_size({"width": 390, "height": 844})

    for name in NAMES:
        response = page.goto(f"{site.url}/incidents/inc-{name}")

        assert response is not None
        assert response.ok, name
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, name


def test_a_rank_that_entered_and_holds_the_call_up_is_not_said_to_be_absent(
    page: Page, site: Site
) -> None:
    page.goto(f"{site.url}/incidents/inc-fallen-gpu")

    expect(page.locator("h1")).to_have_text("Rank 5 holds up 7 ranks")
    expect(page.locator(".tally dt").first).to_have_text("Holds the others up")
    expect(page.locator(".culprit-what")).to_have_text(
        "GPU 1 raised Xid 79: it has fallen off the bus"
    )
    expect(page.locator("#do")).to_contain_text("Restart the job without node-b")


def test_stacks_alone_do_not_send_anybody_to_the_network(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/incidents/inc-plain-inside")

    expect(page.locator("#missing")).to_contain_text("look alike")
    expect(page.locator("#missing")).not_to_contain_text("Every member entered")


def test_separate_causes_are_counted_in_the_heading(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/incidents/inc-two-causes")

    expect(page.locator("h1")).to_have_text("2 separate causes hold up 6 ranks")
    expect(page.locator(".cause .lead")).to_contain_text("Rank 6 (node-b, pid 806) never entered")


def test_limits_are_told_to_their_end_on_both_pages(page: Page, site: Site) -> None:
    for path in ("/incidents/inc-plain-torchrun", "/jobs/c00000000002"):
        page.goto(site.url + path)

        expect(page.locator("#live")).to_contain_text("less than once in 1,000,000 times")


def test_a_slow_job_shows_who_arrives_last(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/jobs/c00000000006")

    expect(page.locator("#why")).to_contain_text("Rank 3 arrived last in 41 of the last 60 waits")
