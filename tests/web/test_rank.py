"""The page of one rank: all that is known of it, and the way to its culprit."""

from __future__ import annotations

import pytest
from playwright.sync_api import BrowserContext, Page, expect
from tests.web.conftest import Site

pytestmark = pytest.mark.web

CULPRIT = "/jobs/a1b2c3d4e5f6/ranks/5"
WAITING = "/jobs/a1b2c3d4e5f6/ranks/1"


def test_a_culprit_shows_what_it_does_where_and_with_which_children(page: Page, site: Site) -> None:
    page.goto(site.url + CULPRIT)

    expect(page).to_have_title("rank 5 culprit · gpt-7b")
    expect(page.locator(".verdict")).to_contain_text("in its dataloader")
    expect(page.locator(".verdict")).to_contain_text("train.py:88 in __getitem__")
    expect(page.locator("#rank-process")).to_contain_text("nfs4_wait")
    expect(page.locator("#rank-gpu")).to_contain_text("57 of 80 GiB")
    expect(page.locator("#rank-stack")).to_contain_text("__getitem__")
    expect(page.locator("#rank-captures tbody tr").first).to_contain_text("stacks and calls")


def test_its_groups_say_how_far_behind_it_is(page: Page, site: Site) -> None:
    page.goto(site.url + CULPRIT)
    group = page.locator("#rank-groups tbody tr").first

    expect(group).to_contain_text("#1041")
    expect(group).to_contain_text("#1042")
    expect(group.locator("strong")).to_have_text("1")


def test_the_path_of_a_waiting_rank_leads_to_the_culprits_page(page: Page, site: Site) -> None:
    page.goto(site.url + WAITING)

    page.locator(".way .is-end a").click()

    expect(page).to_have_url(site.url + CULPRIT)


def test_its_link_is_copied(context: BrowserContext, page: Page, site: Site) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=site.url)
    page.goto(site.url + WAITING)

    page.get_by_role("button", name="Copy link").click()

    assert page.evaluate("navigator.clipboard.readText()") == site.url + WAITING


def test_a_rank_that_the_job_does_not_have_is_said_so(context: BrowserContext, site: Site) -> None:
    page = context.new_page()

    response = page.goto(f"{site.url}/jobs/a1b2c3d4e5f6/ranks/8")

    assert response is not None
    assert response.status == 404
    expect(page.locator("main")).to_contain_text("has ranks 0 to 7, and no 8")
