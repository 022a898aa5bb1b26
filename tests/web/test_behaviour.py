"""What the pages' scripts do: grid, keys, theme, times, stacks, copying, and the live stream."""

from __future__ import annotations

import dataclasses

import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect
from tests.support.waiting import until
from tests.web import preview
from tests.web.conftest import Site

from hangwatch_server import model

pytestmark = pytest.mark.web

HUNG = "/jobs/a1b2c3d4e5f6"
INCIDENT = "/incidents/inc-hung"
# Marks the page when a message that says `healthy` was held back.
MARK_HELD = """() => document.addEventListener("htmx:sse:before:message", (event) => {
  const { message, cancelled } = event.detail;
  if (cancelled && message.data.includes("healthy")) document.body.dataset.held = "1";
})"""


def test_arrow_keys_walk_the_grid_and_enter_opens_the_row(page: Page, site: Site) -> None:
    page.goto(site.url + HUNG)
    page.locator("#grid canvas").focus()
    reading = page.locator("#grid-reading")
    expect(reading).to_contain_text("rank 5, culprit, node-b")

    page.keyboard.press("ArrowRight")
    expect(reading).to_contain_text("rank 6, waiting, node-b")
    page.keyboard.press("Home")
    expect(reading).to_contain_text("rank 0, waiting, node-a")
    page.keyboard.press("Enter")

    expect(page.locator("#rank-0")).to_be_focused()


def test_a_rank_outside_the_table_is_asked_for(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/jobs/f6a1b2c3d4e5")
    page.locator("#grid canvas").focus()

    page.keyboard.press("End")
    page.keyboard.press("Enter")

    expect(page).to_have_url(f"{site.url}/jobs/f6a1b2c3d4e5?ranks=511#rank-511")
    expect(page.locator(".each-rank tbody tr")).to_have_count(1)


def test_hovering_a_rank_shows_who_and_where(page: Page, site: Site) -> None:
    page.goto(site.url + HUNG)

    page.locator("#grid canvas").hover(position={"x": 14, "y": 34})

    expect(page.locator(".tip")).to_contain_text("rank 0 · waiting")
    expect(page.locator(".tip")).to_contain_text("pid 800")


def test_the_theme_is_kept_for_the_next_page(page: Page, site: Site) -> None:
    page.goto(site.url)
    root = page.locator("html")
    light = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")

    page.locator('[data-action="theme"]').click()
    page.goto(f"{site.url}/incidents")

    expect(root).to_have_attribute("data-theme", "dark")
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") != light


def test_the_dark_theme_of_the_system_is_followed(context: BrowserContext, site: Site) -> None:
    page = context.new_page()
    page.emulate_media(color_scheme="dark")

    page.goto(site.url)

    background = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert background == "rgb(14, 16, 19)"


def test_u_shows_times_in_utc(page: Page, site: Site) -> None:
    page.goto(site.url + INCIDENT)
    opened = page.locator("time[data-clock]").first

    page.keyboard.press("u")

    expect(opened).to_contain_text("UTC")
    expect(page.locator('[data-action="utc"]')).to_have_attribute("aria-pressed", "true")


def test_keys_lead_to_pages_and_the_search_field(page: Page, site: Site) -> None:
    page.goto(site.url)

    page.keyboard.press("/")
    expect(page.locator("#search")).to_be_focused()
    page.keyboard.type("gi")
    expect(page).to_have_url(f"{site.url}/")
    page.locator("h1").click()
    page.keyboard.press("g")
    page.keyboard.press("i")

    expect(page).to_have_url(f"{site.url}/incidents")


def test_a_command_is_copied(context: BrowserContext, page: Page, site: Site) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=site.url)
    page.goto(site.url + INCIDENT)

    page.locator('.command:has-text("py-spy dump") [data-copy]').click()

    copied = "navigator.clipboard.readText()"  # written some time after the click
    until(lambda: page.evaluate(copied) == "py-spy dump --pid 805", 30, "the command is copied")


def test_a_button_that_has_copied_has_its_own_name_again(
    context: BrowserContext, page: Page, site: Site
) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=site.url)
    page.goto(f"{site.url}{HUNG}/ranks/5")

    page.get_by_role("button", name="Copy link").click()

    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    expect(page.get_by_role("button", name="Copy link")).to_be_visible()


def test_a_and_s_open_the_menus_of_an_incident_and_escape_closes_them(
    context: BrowserContext, page: Page, site: Site
) -> None:
    cookie = preview.operator_cookie(site.app)
    context.add_cookies([{"name": "hangwatch_session", "value": cookie, "url": site.url}])
    page.goto(site.url + INCIDENT)

    page.keyboard.press("a")
    expect(page.get_by_label("Comment")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_label("Comment")).to_be_hidden()
    page.keyboard.press("s")

    expect(page.get_by_role("button", name="15 minutes")).to_be_focused()


def test_a_change_arrives_without_reloading(page: Page, site: Site) -> None:
    page.goto(site.url + HUNG)
    page.evaluate("window.isSamePage = true")

    _resolve(site)

    expect(page.locator(".verdict-state")).to_contain_text("healthy")
    expect(page).to_have_title("● healthy · gpt-7b")
    assert page.evaluate("window.isSamePage") is True


def test_a_page_whose_stream_script_comes_late_is_live_all_the_same(page: Page, site: Site) -> None:
    held: list[Route] = []
    page.route("**/hx-sse.min.js", lambda route: held.append(route))
    page.goto(site.url + HUNG, wait_until="commit")
    until(lambda: page.evaluate("typeof htmx !== 'undefined'") and held, 60, "htmx runs")
    held[0].continue_()

    _resolve(site)

    expect(page.locator(".verdict-state")).to_contain_text("healthy")


def test_nothing_moves_while_the_reader_types(page: Page, site: Site) -> None:
    page.goto(site.url + HUNG)
    page.evaluate(MARK_HELD)
    page.locator("#range").fill("0-3")

    _resolve(site)
    expect(page.locator("body")).to_have_attribute("data-held", "1")
    expect(page.locator("#range")).to_have_value("0-3")
    expect(page.locator(".verdict-state")).to_contain_text("hung")
    page.locator("#range").blur()

    expect(page.locator(".verdict-state")).to_contain_text("healthy")


def test_the_row_under_a_resting_pointer_stays_where_it_is(page: Page, site: Site) -> None:
    page.set_viewport_size({"width": 1440, "height": 480})
    page.goto(site.url)
    row = page.locator("#job-b2c3d4e5f6a1")
    row.hover()
    before = row.bounding_box()
    assert before is not None

    _hang_more(site, 3)

    expect(page.locator(".row-hung")).to_have_count(_hung(site))
    after = row.bounding_box()
    assert after is not None
    assert abs(after["y"] - before["y"]) < 1.0


def test_a_paused_page_stands_still_until_its_reader_goes_on(page: Page, site: Site) -> None:
    page.goto(site.url + HUNG)
    page.evaluate(MARK_HELD)
    page.keyboard.press("p")
    expect(page.locator("#paused-banner")).to_contain_text("Updates are paused.")

    _resolve(site)
    expect(page.locator("body")).to_have_attribute("data-held", "1")
    expect(page.locator(".verdict-state")).to_contain_text("hung")
    page.get_by_role("button", name="Go on").click()

    expect(page.locator(".verdict-state")).to_contain_text("healthy")
    expect(page.locator("#paused-banner")).to_be_hidden()


def test_a_lost_stream_is_said_with_the_time_of_the_last_update(
    context: BrowserContext, site: Site
) -> None:
    page = context.new_page()
    page.goto(site.url + HUNG)
    expect(page.locator("#stream-banner")).to_be_hidden()

    context.set_offline(True)
    site.end_streams()

    expect(page.locator("#stream-banner")).to_be_visible()
    expect(page.locator("#stream-since")).not_to_be_empty()


def _resolve(site: Site) -> None:
    """The hung job makes progress again."""
    job = site.scene.jobs[0]
    verdict = dataclasses.replace(
        job.verdict, state=model.State.HEALTHY, summary="", culprits=(), culprit_ranks=""
    )
    site.scene.jobs[0] = dataclasses.replace(job, state=model.State.HEALTHY, verdict=verdict)
    site.publish(f"job:{job.id}")


def _hang_more(site: Site, count: int) -> None:
    """So many jobs more hang: they go to the top of the list."""
    job = site.scene.jobs[0]
    for number in range(count):
        verdict = dataclasses.replace(job.verdict, job=f"aa{number:010d}", stalled_s=900.0)
        site.scene.jobs.append(dataclasses.replace(job, id=verdict.job, verdict=verdict))
    site.publish("jobs")


def _hung(site: Site) -> int:
    return sum(job.state is model.State.HUNG for job in site.scene.jobs)
