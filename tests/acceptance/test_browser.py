"""A person with a stuck job: from the overview to the culprit's line in a real browser, live."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from tests.support.browser import launch
from tests.support.waiting import until

from hangwatch_server.demo import cases
from hangwatch_server.demo.main import find_verdict
from hangwatch_server.demo.stage import Stage
from hangwatch_server.model import State

DEADLINE_MS = 30_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=DEADLINE_MS)
    with sync_playwright() as playwright:
        launched = launch(playwright)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def hung(stage: Stage) -> Iterator[dict[str, Any]]:
    """The verdict of a real hung job, which lives on while the pages are read."""
    job = stage.start_job(cases.find("dataloader"), "browsed")

    def confirmed() -> dict[str, Any] | None:
        verdict = find_verdict(stage, "browsed")
        return verdict if verdict and verdict["state"] == State.HUNG else None

    yield until(confirmed, 120, "the hang is confirmed")
    job.stop()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    opened = context.new_page()
    problems: list[str] = []
    opened.on("console", lambda line: problems.append(line.text) if line.type == "error" else None)
    opened.on("pageerror", lambda error: problems.append(str(error)))
    yield opened
    context.close()
    assert not problems


def test_overview_leads_to_the_culprits_line(
    page: Page, stage: Stage, hung: dict[str, Any], tmp_path: Path
) -> None:
    page.goto(stage.url)
    expect(page.locator("h1")).to_contain_text("stuck")

    page.locator(".jobs").get_by_text("browsed", exact=True).click()
    expect(page.locator(".verdict-state")).to_contain_text("hung")
    page.get_by_role("link", name="Open the incident").first.click()

    expect(page.locator("h1")).to_contain_text("Rank 1 holds up 3 ranks")
    culprit = page.locator(".culprit").first
    expect(culprit).to_contain_text("in its dataloader")
    expect(culprit).to_contain_text("dataloader_stuck.py")
    expect(culprit).not_to_contain_text("No stack of this rank")
    expect(culprit.locator(".source")).to_contain_text(
        ["for batch in DataLoader(shards", "self.stuck_path.read_bytes()"]
    )
    expect(page.locator("#stacks-title")).to_be_visible()
    page.screenshot(path=tmp_path / "incident.png", full_page=True)


def test_every_other_page_shows_the_real_thing(
    page: Page, stage: Stage, hung: dict[str, Any]
) -> None:
    incident = stage.client.get(f"/incidents/{hung['incident']}")
    captures = [stage.client.get(f"/captures/{name}") for name in incident["captures"]]
    of_all = next(capture for capture in captures if capture["ranks"] != hung["culprit_ranks"])
    for address, words in (
        (f"/jobs/{hung['job']}", "node-b"),
        ("/incidents", "browsed"),
        (f"/incidents/{hung['incident']}", "dataloader_stuck.py"),
        (f"/captures/{of_all['id']}", "all_reduce"),
        ("/nodes", "node-a"),
        ("/nodes/node-a", "browsed"),
        ("/login", "token"),
    ):
        page.goto(stage.url + address)
        expect(page.locator("body")).to_contain_text(words)
