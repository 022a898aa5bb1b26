"""Overview, incidents and nodes as lists: filters and pages in the address, and what is empty."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest
from playwright.sync_api import Page, expect
from tests.web import making, scenes
from tests.web.conftest import Site

from hangwatch_server import model

pytestmark = pytest.mark.web

ROWS = ".jobs:not(.earlier) tbody tr"


def test_a_row_tells_the_verdict_in_one_line_and_draws_the_progress(page: Page, site: Site) -> None:
    page.goto(site.url)
    row = page.locator("#job-a1b2c3d4e5f6")

    expect(row.locator(".cell-what")).to_contain_text(
        "never entered all_reduce #1042 of group dp-1"
    )
    expect(row.locator(".cell-what")).to_contain_text("in its dataloader")
    expect(row.locator(".cell-what")).not_to_contain_text("have waited")
    assert row.locator(".tiny path").count() == 2
    label = row.locator(".tiny").get_attribute("aria-label") or ""
    assert label.startswith("0.0 calls per second and rank")
    expect(row.locator(".cell-since")).to_contain_text("3 h ")


def test_jobs_that_are_over_stand_apart(page: Page, site: Site) -> None:
    page.goto(site.url)

    expect(page.locator(".earlier tbody tr")).to_have_count(2)
    expect(page.locator(".earlier")).to_contain_text("uncaught RuntimeError")


def test_incidents_are_filtered_by_job_node_and_time_in_the_address(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/incidents")

    page.get_by_label("Node", exact=True).fill("node-b")
    page.get_by_label("Opened within").select_option("24 hours")
    page.get_by_role("button", name="Filter").click()

    expect(page.locator(".incidents tbody tr")).to_have_count(1)
    assert "node=node-b" in page.url
    assert "opened=24h" in page.url
    page.get_by_role("link", name="open", exact=True).click()
    expect(page.locator(".incidents tbody tr")).to_have_count(1)
    assert "node=node-b" in page.url
    page.get_by_role("link", name="Clear filters").click()
    expect(page).to_have_url(f"{site.url}/incidents")


def test_an_old_incident_is_outside_a_short_time(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/incidents?state=resolved&opened=24h")

    expect(page.locator("main")).to_contain_text("No incident matches.")
    expect(page.locator("h1")).to_contain_text("4 incidents open")  # of all, not of those listed


def test_nodes_are_sorted_by_what_they_cost(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/nodes")
    expect(page.locator(".nodes .cell-name").first).to_contain_text("node-f")

    page.get_by_role("link", name="GPU hours lost").click()

    expect(page.locator(".nodes .cell-name").first).to_contain_text("node-b")
    expect(page.locator(".nodes .cell-name").first).to_contain_text("repeat offender")
    expect(page.locator("main")).to_contain_text("each rank counts as one GPU")


def test_a_node_shows_its_ranks_and_leads_to_each(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/nodes/node-b")

    page.get_by_role("link", name="5", exact=True).click()

    expect(page).to_have_url(f"{site.url}/jobs/a1b2c3d4e5f6/ranks/5")


def test_a_node_whose_clock_goes_wrong_is_marked(page: Page, site: Site) -> None:
    site.scene.nodes = [
        making.node("node-a", clock_ahead_s=-75.0),
        making.node("node-b", clock_ahead_s=0.4),
    ]

    page.goto(f"{site.url}/nodes")

    expect(page.locator(".nodes .cell-name").first).to_contain_text("clock 1 min 15 s behind")
    expect(page.locator(".nodes .cell-name").nth(1)).not_to_contain_text("clock")


class TestWithManyJobs:
    """A page holds fifty jobs; the others are a click away."""

    @pytest.fixture
    def scene(self) -> scenes.Scene:
        scene = scenes.Scene()
        for number in range(120):
            said = making.verdict(f"{number:012d}", f"sweep-{number:03d}", model.State.HEALTHY)
            scene.add(making.job(said), (making.rank(0),))
        return scene

    def test_jobs_are_paged_by_the_server(self, page: Page, site: Site) -> None:
        page.goto(site.url)
        expect(page.locator(ROWS)).to_have_count(50)
        expect(page.locator(".pager")).to_contain_text("of 120")

        page.get_by_role("link", name="More").click()
        page.get_by_role("link", name="More").click()

        expect(page.locator(ROWS)).to_have_count(20)
        expect(page).to_have_url(f"{site.url}/?page=3")


class TestWithTenThousandIncidents:
    """The list stays as short and light as with fifty."""

    @pytest.fixture
    def scene(self) -> scenes.Scene:
        scene = scenes.everything()
        over = next(row for row in scene.incidents if row.id == "inc-over")
        scene.incidents = [
            dataclasses.replace(
                over, id=f"inc-{number:05d}", opened_at=making.NOW - timedelta(minutes=number)
            )
            for number in range(10_000)
        ]
        return scene

    def test_incidents_are_paged_by_the_server(self, page: Page, site: Site) -> None:
        page.goto(f"{site.url}/incidents")
        expect(page.locator(".incidents tbody tr")).to_have_count(50)
        assert len(page.content()) < 100_000

        page.get_by_role("link", name="Older").click()

        expect(page.locator(".incidents tbody tr")).to_have_count(50)
        expect(page.locator("#incident-inc-00050")).to_be_visible()
        assert "before=inc-00049" in page.url


class TestWithoutIncidents:
    """Nothing is open: when was the last one?"""

    @pytest.fixture
    def scene(self) -> scenes.Scene:
        scene = scenes.everything()
        over = next(row for row in scene.incidents if row.id == "inc-over")
        opened_at = making.NOW - timedelta(days=2, minutes=9)
        scene.incidents = [dataclasses.replace(over, opened_at=opened_at)]
        return scene

    def test_the_last_incident_and_how_long_ago_is_said(self, page: Page, site: Site) -> None:
        page.goto(f"{site.url}/incidents")

        expect(page.locator("h1")).to_have_text("No incident is open")
        expect(page.locator(".page-head")).to_contain_text("The last one ended 2 d ago: bert-base")
        expect(page.locator(".incidents tbody tr")).to_contain_text("9 min 00 s")
