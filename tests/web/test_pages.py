"""Each page in a real browser over hand-made scenes: it renders and says what it should."""

from __future__ import annotations

import pytest
from playwright.sync_api import BrowserContext, Page, expect
from tests.web import making, preview, scenes
from tests.web.conftest import Site

from hangwatch_server import model

pytestmark = pytest.mark.web

PAGES = (
    "/",
    "/?state=hung&q=gpt",
    "/jobs/a1b2c3d4e5f6",
    "/jobs/f6a1b2c3d4e5",
    "/jobs/e5f6a1b2c3d4",
    "/jobs/2a3b4c5d6e7f",
    "/jobs/a1b2c3d4e5f6/ranks/5",
    "/jobs/2a3b4c5d6e7f/ranks/1",
    "/incidents",
    "/incidents?state=resolved&node=nowhere",
    "/nodes?sort=lost",
    "/incidents/inc-hung",
    "/incidents/inc-mismatch",
    "/incidents/inc-deadlock",
    "/incidents/inc-over",
    "/incidents/inc-hostile",
    "/captures/cap-hung",
    "/captures/cap-taking",
    "/captures/cap-after",
    "/captures/cap-after/compare?before=cap-before",
    "/incidents/inc-hung/stacks",
    "/jobs/a1b2c3d4e5f6/captures",
    "/nodes",
    "/nodes/node-g",
    "/offline",
    "/login",
)


def test_each_page_renders_within_the_content_policy_and_fits_a_phone(
    page: Page, site: Site
) -> None:
    page.set_viewport_size({"width": 390, "height": 844})

    for path in PAGES:
        response = page.goto(site.url + path)

        assert response is not None
        assert response.ok, path
        expect(page.locator("h1").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path


def test_the_tab_title_says_how_many_jobs_are_stuck(page: Page, site: Site) -> None:
    page.goto(site.url)

    expect(page).to_have_title("▲ 4 of 10 jobs are stuck · Hangwatch")
    expect(page.locator("h1")).to_contain_text("4 of 10 jobs are stuck.")


def test_jobs_are_listed_worst_first(page: Page, site: Site) -> None:
    page.goto(site.url)

    words = page.locator(".jobs:not(.earlier) .cell-state").all_inner_texts()

    assert words[0] == "hung"
    assert words[-1] == "healthy"
    assert words.index("suspected") < words.index("healthy")


def test_a_filter_lives_in_the_address(page: Page, site: Site) -> None:
    page.goto(site.url)

    page.get_by_role("link", name="suspected 1").click()

    expect(page).to_have_url(f"{site.url}/?state=suspected")
    expect(page.locator(".jobs tbody tr")).to_have_count(1)


def test_a_search_that_finds_nothing_offers_the_way_back(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/?q=nothing-like-this")

    page.get_by_role("link", name="Clear filters").first.click()

    expect(page.locator(".jobs tbody tr")).to_have_count(12)


def test_three_clicks_lead_from_the_overview_to_the_culprits_line(page: Page, site: Site) -> None:
    page.goto(site.url)

    page.get_by_role("link", name="Open the incident").click()

    expect(page.locator("h1")).to_have_text("Rank 5 holds up 7 ranks")
    expect(page.locator(".culprit-where")).to_have_text("train.py:88 in __getitem__")


def test_hostile_names_are_shown_as_text(page: Page, site: Site) -> None:
    for path in ("/", "/jobs/2a3b4c5d6e7f", "/incidents/inc-hostile"):
        page.goto(site.url + path)

        assert page.locator("#live script, #live img").count() == 0
        expect(page.locator("body")).to_contain_text('<script>alert("x")</script>')
        assert "\u202e" not in page.inner_text("body")
        assert "\u202e" not in page.title()


def test_mismatched_calls_stand_side_by_side(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/incidents/inc-mismatch")

    calls = page.locator(".call-parts > div:first-child dd")
    expect(calls).to_contain_text(["all_reduce", "barrier"])
    assert page.locator(".tag", has_text="odd one out").count() == 0  # a tie has no odd one


def test_a_wait_cycle_is_drawn_as_a_ring(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/incidents/inc-deadlock")

    expect(page.locator(".ring-dot")).to_have_count(4)
    expect(page.locator(".ring-label").first).to_have_text("pp-0 recv from 1")


def test_missing_parts_of_a_capture_have_a_reason_and_a_remedy(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/captures/cap-taking")

    gap = page.locator(".gaps tbody tr").first
    expect(gap).to_contain_text("py-spy may not read the process")
    expect(gap).to_contain_text("kernel.yama.ptrace_scope")
    expect(page.locator("progress")).to_have_attribute("value", "8")


def test_an_operator_acknowledges_with_a_forgery_token(
    context: BrowserContext, page: Page, site: Site
) -> None:
    cookie = preview.operator_cookie(site.app)
    context.add_cookies([{"name": "hangwatch_session", "value": cookie, "url": site.url}])
    page.goto(f"{site.url}/incidents/inc-hung")

    page.locator("summary", has_text="Acknowledge").click()
    page.get_by_role("button", name="Acknowledge").click()

    expect(page.locator(".meta").first).to_contain_text("acknowledged by ada")


def test_a_reader_sees_no_buttons_that_would_be_refused(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/incidents/inc-hung")

    assert page.locator("form[method=post]").count() == 0


def test_text_and_json_are_at_the_same_address(page: Page, site: Site) -> None:
    address = f"{site.url}/incidents/inc-hung"

    text = page.request.get(f"{address}.txt").text()
    document = page.request.get(f"{address}.json").json()

    assert "HAS NOT ARRIVED  5" in text
    assert document["verdict"]["culprits"][0]["rank"] == 5
    assert document["verdict"]["path"][0]["for"] == [1]


@pytest.mark.parametrize("path", ["/jobs/a1b2c3d4e5f6", "/incidents/inc-hung"])
def test_what_is_asked_for_decides_the_form(page: Page, site: Site, path: str) -> None:
    text = page.request.get(site.url + path, headers={"accept": "text/plain"})
    document = page.request.get(site.url + path, headers={"accept": "application/json"})

    assert "HAS NOT ARRIVED  5" in text.text()
    assert (document.json().get("verdict") or document.json())["culprits"][0]["rank"] == 5


def test_the_text_of_an_incident_leads_back_to_its_page(page: Page, site: Site) -> None:
    text = page.request.get(f"{site.url}/incidents/inc-hung.txt").text()

    (link,) = [line for line in text.splitlines() if line.startswith("http://")]
    page.goto(link)

    expect(page.locator("h1")).to_have_text("Rank 5 holds up 7 ranks")


def test_an_unknown_job_says_what_to_do_next(context: BrowserContext, site: Site) -> None:
    page = context.new_page()

    response = page.goto(f"{site.url}/jobs/nothere")

    assert response is not None
    assert response.status == 404
    expect(page.locator("main")).to_contain_text("hangwatch status")


class TestWithoutJobs:
    """The first thing that a new user sees."""

    @pytest.fixture
    def scene(self) -> scenes.Scene:
        return scenes.Scene()

    def test_the_empty_page_teaches_three_commands_and_comes_alive(
        self, page: Page, site: Site
    ) -> None:
        page.goto(site.url)
        expect(page.locator(".steps code")).to_have_count(3)
        expect(page.locator("body")).to_contain_text("waiting for the first heartbeat")

        said = making.verdict("0a1b2c3d4e5f", "first", model.State.HEALTHY)
        site.scene.add(making.job(said), (making.rank(0),))
        site.publish("jobs")

        expect(page.locator(".jobs .cell-name")).to_have_text("first")
        expect(page).to_have_title("● The one job is making progress · Hangwatch")
