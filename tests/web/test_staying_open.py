"""A page that stays open: what it shows while the server, its database, the session or the ranks of
its job go and come.
"""

from __future__ import annotations

import dataclasses
import re

import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect
from tests.web import making, preview
from tests.web.conftest import Site

from hangwatch_server import model
from hangwatch_server.errors import DatabaseError

pytestmark = pytest.mark.web

HUNG_ID = "a1b2c3d4e5f6"
HUNG = f"/jobs/{HUNG_ID}"
INCIDENT = "/incidents/inc-hung"


def test_a_page_whose_session_is_over_leads_to_the_login(
    context: BrowserContext, site: Site
) -> None:
    page = _signed_in(context, site)
    page.goto(site.url + HUNG)
    expect(page.locator(".verdict-state")).to_contain_text("hung")

    site.app.state.sessions.over()
    site.end_streams()

    expect(page).to_have_url(f"{site.url}/login?next={HUNG.replace('/', '%2F')}")


def test_an_action_of_a_session_that_is_over_leads_to_the_login(
    context: BrowserContext, site: Site
) -> None:
    page = _signed_in(context, site)
    page.goto(site.url + INCIDENT)
    page.keyboard.press("a")

    site.app.state.sessions.over()
    page.get_by_role("button", name="Acknowledge").click()

    expect(page).to_have_url(f"{site.url}/login?next={INCIDENT.replace('/', '%2F')}")


def test_a_page_stays_while_the_database_is_away(context: BrowserContext, site: Site) -> None:
    page = context.new_page()
    page.goto(site.url + HUNG)
    page.evaluate("window.isSamePage = true")

    watch = site.app.state.services.watch
    find, job_of = watch.job, site.scene.jobs[0]

    async def away(job_id: str) -> model.Job:
        raise DatabaseError("Postgres cannot be reached")

    watch.job = away
    site.publish(f"job:{HUNG_ID}")
    expect(page.locator("#stream-banner")).to_be_visible()
    expect(page.locator(".verdict-state")).to_contain_text("hung")
    watch.job = find
    verdict = dataclasses.replace(job_of.verdict, state=model.State.HEALTHY)
    site.scene.jobs[0] = dataclasses.replace(job_of, state=model.State.HEALTHY, verdict=verdict)
    site.publish(f"job:{HUNG_ID}")

    expect(page.locator(".verdict-state")).to_contain_text("healthy")
    expect(page.locator("#stream-banner")).to_be_hidden()
    assert page.evaluate("window.isSamePage") is True


class Lack:
    """What the server lacks, as a test says."""

    text = ""

    def __call__(self) -> str:
        return self.text


def test_a_page_says_what_its_server_lacks_for_as_long_as_that_lasts(
    page: Page, site: Site
) -> None:
    lack = site.app.state.services.missing = Lack()
    banner = page.locator("#missing-banner")
    page.goto(site.url + HUNG)
    expect(banner).to_be_hidden()

    lack.text = "Redis cannot be reached. <b>Check</b> that it runs."
    site.publish(f"job:{HUNG_ID}")
    expect(banner).to_have_text(lack.text)
    page.reload()
    expect(banner).to_have_text(lack.text)
    lack.text = ""
    site.publish(f"job:{HUNG_ID}")

    expect(banner).to_be_hidden()


def test_the_grid_is_drawn_as_soon_as_ranks_report(page: Page, site: Site) -> None:
    rows = site.scene.ranks[HUNG_ID]
    site.scene.ranks[HUNG_ID] = ()
    page.goto(site.url + HUNG)
    expect(page.get_by_text("No rank has reported yet.")).to_be_visible()

    site.scene.ranks[HUNG_ID] = rows
    site.publish(f"job:{HUNG_ID}")

    expect(page.locator("#grid")).to_have_attribute("data-drawn", str(len(rows)))


def test_the_grid_comes_back_with_the_ranks(page: Page, site: Site) -> None:
    rows = site.scene.ranks[HUNG_ID]
    page.goto(site.url + HUNG)
    expect(page.locator("#grid")).to_have_attribute("data-drawn", str(len(rows)))

    site.scene.ranks[HUNG_ID] = ()
    site.publish(f"job:{HUNG_ID}")
    expect(page.get_by_text("No rank has reported yet.")).to_be_visible()
    site.scene.ranks[HUNG_ID] = rows
    site.publish(f"job:{HUNG_ID}")

    expect(page.locator("#grid")).to_have_attribute("data-drawn", str(len(rows)))
    page.locator("#grid canvas").focus()
    expect(page.locator("#grid-reading")).to_contain_text("rank 5, culprit")


def test_a_page_that_connects_anew_shows_each_rank_at_its_place(page: Page, site: Site) -> None:
    rows = site.scene.ranks[HUNG_ID]
    page.goto(site.url + HUNG)
    site.scene.ranks[HUNG_ID] = rows[4:]
    site.publish(f"job:{HUNG_ID}")
    expect(page.locator("#grid")).to_have_attribute("data-drawn", "4")

    site.scene.ranks[HUNG_ID] = rows  # as when the page was opened
    site.end_streams()

    expect(page.locator("#grid")).to_have_attribute("data-drawn", str(len(rows)))
    page.locator("#grid canvas").focus()
    expect(page.locator("#grid-reading")).to_contain_text("rank 5, culprit, node-b")


def test_another_mesh_is_drawn_in_place_of_the_old_one(page: Page, site: Site) -> None:
    site.scene.groups[HUNG_ID] = _mesh("tp", "dp")
    page.goto(site.url + HUNG)
    columns = page.locator("select[name=columns] option")
    expect(columns).to_have_text(["tp", "dp"])
    expect(page.locator(".mesh-grid")).to_have_attribute("data-drawn", "8")

    site.scene.groups[HUNG_ID] = _mesh("pp", "cp")
    site.publish(f"job:{HUNG_ID}")

    expect(columns).to_have_text(["pp", "cp"])
    expect(page.locator(".mesh-grid")).to_have_attribute("data-drawn", "8")
    page.locator(".mesh-grid canvas").focus()
    expect(page.locator("#mesh-reading")).to_contain_text("pp 1, cp 2")


def test_a_page_whose_stream_is_refused_at_first_keeps_what_it_shows(
    context: BrowserContext, site: Site
) -> None:
    page = context.new_page()
    asked: list[str] = []

    def refuse_once(route: Route) -> None:
        asked.append(route.request.url)
        if len(asked) == 1:
            route.fulfill(status=503, content_type="text/html", body="<h1>no database</h1>")
        else:
            route.continue_()

    page.route(re.compile(r"/live\?"), refuse_once)
    page.goto(site.url + HUNG)
    expect(page.locator("#stream-banner")).to_be_visible()
    expect(page.locator(".verdict-state")).to_contain_text("hung")

    expect(page.locator("#stream-banner")).to_be_hidden()
    assert len(asked) > 1


def test_a_page_that_is_held_for_long_says_so(page: Page, site: Site) -> None:
    page.goto(site.url + HUNG)
    page.locator("#range").focus()

    job = site.scene.jobs[0]
    verdict = dataclasses.replace(job.verdict, state=model.State.HEALTHY, summary="")
    site.scene.jobs[0] = dataclasses.replace(job, state=model.State.HEALTHY, verdict=verdict)
    site.publish(f"job:{HUNG_ID}")

    expect(page.locator("#held-banner")).to_be_visible()
    expect(page.locator(".verdict-state")).to_contain_text("hung")
    page.locator("#range").blur()
    expect(page.locator(".verdict-state")).to_contain_text("healthy")
    expect(page.locator("#held-banner")).to_be_hidden()


def _mesh(inner: str, outer: str) -> tuple[model.GroupRow, ...]:
    """Eight ranks as pairs of one family and fours of another."""
    pairs = [(inner, f"{first},{first + 1}") for first in range(0, 8, 2)]
    fours = [(outer, "0-6:2"), (outer, "1-7:2")]
    return tuple(
        making.group(f"{family}-{number}", members, family=family)
        for number, (family, members) in enumerate([*pairs, *fours])
    )


def _signed_in(context: BrowserContext, site: Site) -> Page:
    """A page of an operator, where nobody may read without a session."""
    cookie = preview.operator_cookie(site.app)
    context.add_cookies([{"name": "hangwatch_session", "value": cookie, "url": site.url}])
    site.app.state.settings.allow_anonymous = False
    return context.new_page()
