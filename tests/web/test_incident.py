"""The page of one incident: its states and sizes, the path, the lanes, and what people do there."""

from __future__ import annotations

import dataclasses
import re

import pytest
from playwright.sync_api import BrowserContext, Page, expect
from tests.web import hangs, making, preview, scenes
from tests.web.conftest import Site

from hangwatch_server import model

pytestmark = pytest.mark.web

HUNG = "/incidents/inc-hung"
NAMES = (
    "hung",
    "mismatch",
    "deadlock",
    "stalled",
    "node-gone",
    "pipeline-recv",
    "ten-culprits",
    "three-hundred",
    "long-cycle",
    "three-causes",
    "hostile-all",
    "ended",
    "restarted",
    "resolved",
)


@pytest.fixture
def scene() -> scenes.Scene:
    return hangs.everything()


@pytest.fixture
def operator(context: BrowserContext, site: Site) -> None:
    cookie = preview.operator_cookie(site.app)
    context.add_cookies([{"name": "hangwatch_session", "value": cookie, "url": site.url}])


def test_every_state_and_size_fits_desk_and_phone(page: Page, site: Site) -> None:
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 844})
        for name in NAMES:
            response = page.goto(f"{site.url}/incidents/inc-{name}")

            assert response is not None
            assert response.ok, name
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)


def test_the_smaller_set_comes_first_and_is_copyable(
    context: BrowserContext, page: Page, site: Site
) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=site.url)
    page.goto(site.url + HUNG)
    expect(page.locator(".tally dt")).to_have_text(["Has not arrived", "Waiting"])
    page.locator(".tally-side.is-waiting [data-copy]").click()
    assert page.evaluate("navigator.clipboard.readText()") == "0-4,6-7"

    page.goto(f"{site.url}/incidents/inc-three-hundred")

    expect(page.locator(".tally dt")).to_have_text(["Waiting", "Has not arrived"])


def test_a_card_tells_process_children_and_gpu(page: Page, site: Site) -> None:
    page.goto(site.url + HUNG)
    facts = page.locator("#rank-5 .card-facts")

    expect(facts).to_contain_text("S (sleeping) in pipe_read · main thread 0 % of a core")
    expect(facts).to_contain_text("loader 831 D (uninterruptible) in nfs4_wait")
    expect(facts).to_contain_text("118 of 700 W")


def test_a_card_shows_the_text_of_the_line_that_its_rank_stands_at(page: Page, site: Site) -> None:
    page.goto(site.url + HUNG)
    card = page.locator("#rank-5")

    first = card.locator(".source").first
    expect(first.locator(".is-at")).to_have_text(
        "88    return decode(self.storage.read(path))  # one shard at a time"
    )
    expect(first.locator("li")).to_have_count(5)
    expect(card.locator(".source").nth(1)).to_have_text("141for batch in loader:")
    expect(page.locator("#stacks .frame-source").first).to_be_visible()


def test_what_is_missing_is_a_row_of_its_own(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/incidents/inc-ended")

    expect(page.locator("#rank-3 .is-missing")).to_have_text(
        ["Processnot kept for this rank", "Stacknone of this rank is at hand"]
    )
    expect(page.locator("#raw .is-missing")).to_have_count(2)


def test_the_path_of_any_rank_is_asked_for_on_the_page(page: Page, site: Site) -> None:
    page.goto(site.url + HUNG)
    expect(page.locator(".way-rank")).to_have_text(["0", "1", "5"])

    page.get_by_role("textbox", name="Why does rank").fill("3")
    page.get_by_role("button", name="Show").click()

    expect(page).to_have_url(re.compile(r"rank=3"))
    expect(page.locator(".way-rank")).to_have_text(["3", "1", "5"])
    expect(page.locator(".way-step.is-end")).to_contain_text("in its dataloader")


def test_paper_is_light_whatever_the_screen_shows(page: Page, site: Site) -> None:
    page.emulate_media(color_scheme="dark")
    page.goto(site.url + HUNG)
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    ink = "getComputedStyle(document.documentElement).getPropertyValue('--ink')"
    assert page.evaluate(ink) == "#e9ebee"

    page.emulate_media(media="print", color_scheme="dark")

    assert page.evaluate(ink) == "#14161a"
    expect(page.locator("#missing")).to_be_visible()
    expect(page.locator(".forms, .top, #stacks").locator("visible=true")).to_have_count(0)


def test_a_long_cycle_is_folded_and_told_in_words(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/incidents/inc-long-cycle")
    picture = page.get_by_role("img", name=re.compile("rank 10 waits in pp-10 recv #9"))

    expect(picture).to_be_visible()
    expect(picture.locator("circle")).to_have_count(12)
    expect(picture.locator(".is-folded")).to_have_count(1)


def test_calls_that_differ_stand_side_by_side(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/incidents/inc-mismatch")

    expect(page.locator(".side")).to_have_count(2)
    expect(page.locator(".side").nth(0).locator(".differs dd")).to_contain_text(
        ["all_reduce", "[1]", "int"]
    )
    expect(page.locator(".side").nth(1)).to_contain_text("train.py:70 in main")


def test_sends_stand_beside_the_receives_that_wait_for_them(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/incidents/inc-pipeline-recv")
    first = page.locator("#pairs tbody tr").first

    expect(first.locator("td")).to_have_text(
        [
            "rank 1",
            "rank 2",
            "pp",
            "40 1 fewer",
            "41",
            "rank 2 waits in recv #41 (tag 7) for 41 s at stage.py:31 in forward",
        ]
    )
    expect(page.locator("#lanes")).to_have_count(0)


def test_a_stall_blames_nobody_and_lists_nodes_by_signs(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/incidents/inc-stalled")

    expect(page.locator("#missing-title")).to_have_text("Nobody is to blame")
    expect(page.locator(".signs tbody tr").first).to_contain_text("Xid 74: an NVLink error")
    expect(page.locator("#missing")).to_contain_text("The other 6 nodes show none.")


def test_each_separate_cause_has_its_own_block(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/incidents/inc-three-causes")

    expect(page.locator("#missing .culprit")).to_have_count(1)
    expect(page.locator(".cause h2")).to_contain_text(
        ["Separate cause 2 of 3", "Separate cause 3 of 3"]
    )
    expect(page.locator(".cause .culprit h3")).to_have_text(["rank 6", "rank 9"])


def test_culprits_alike_share_a_card_and_many_fold(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/incidents/inc-node-gone")
    expect(page.locator(".culprit h3")).to_have_text(["8 ranks 8-15"])

    page.goto(f"{site.url}/incidents/inc-ten-culprits")
    expect(page.locator(".culprit")).to_have_count(6)
    page.get_by_text("4 more culprits").click()

    expect(page.locator("#rank-39")).to_be_visible()


def test_the_lane_of_the_culprit_ends_in_a_missing_call(page: Page, site: Site) -> None:
    page.goto(site.url + HUNG)
    first = page.locator(".lane").first

    expect(first.locator("tbody tr").first.locator(".cell").last).to_have_attribute(
        "title", "#1042 all_reduce: never entered"
    )
    expect(first.locator("tbody tr").nth(1).locator(".cell").last).to_have_attribute(
        "title", re.compile("entered, not finished")
    )


def test_lanes_scroll_in_their_own_box_on_a_phone(page: Page, site: Site) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(site.url + HUNG)

    is_wider = "box => box.scrollWidth > box.clientWidth"
    assert page.locator(".lane-box").first.evaluate(is_wider)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.usefixtures("operator")
def test_c_opens_the_comment_and_it_joins_the_history(page: Page, site: Site) -> None:
    page.goto(site.url + HUNG)

    page.keyboard.press("c")
    page.get_by_label("Note for the history").fill("drained <node-b>")
    page.keyboard.press("Enter")

    expect(page.locator(".story li").last).to_contain_text("comment by ada")
    expect(page.locator(".story li").last).to_contain_text("drained <node-b>")


@pytest.mark.usefixtures("operator")
def test_a_snooze_until_the_job_ends_says_so(page: Page, site: Site) -> None:
    page.goto(site.url + HUNG)

    page.keyboard.press("s")
    page.get_by_role("button", name="Until the job ends").click()

    expect(page.locator(".incident-head .meta")).to_contain_text("snoozed until the job ends")


@pytest.mark.usefixtures("operator")
def test_an_ended_incident_takes_comments_and_nothing_else(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/incidents/inc-restarted")

    expect(page.locator(".eyebrow")).to_contain_text("ended")
    expect(page.locator(".incident-head .meta")).to_contain_text("restarted")
    expect(page.locator("#comment")).to_be_visible()
    expect(page.locator("#acknowledge, #snooze")).to_have_count(0)


def test_text_and_json_are_at_the_same_address(context: BrowserContext, site: Site) -> None:
    for accept, kind, inside in (
        ("text/plain", "text/plain", "CULPRIT"),
        ("application/json", "application/json", '"kind":"missing_ranks"'),
        ("text/html", "text/html", "<!doctype html>"),
    ):
        answer = context.request.get(site.url + HUNG, headers={"accept": accept})

        assert answer.headers["content-type"].startswith(kind)
        if kind != "text/plain":
            assert inside in answer.text().replace('": "', '":"')


def test_what_the_pointer_is_on_is_not_moved(page: Page, site: Site) -> None:
    page.goto(site.url + HUNG)
    page.evaluate(
        """() => document.addEventListener("htmx:sse:before:message", (event) => {
          if (event.detail.cancelled) document.body.dataset.held = "1";
        })"""
    )
    tally = page.locator(".tally")
    tally.hover(position={"x": 20, "y": 20})
    tally.hover(position={"x": 60, "y": 30})

    _now(site, culprit_ranks="5-6", waiting="0-4,7")

    expect(page.locator("body")).to_have_attribute("data-held", "1")
    expect(page.locator(".tally-side.is-culprit")).to_contain_text("1 rank")
    page.mouse.move(2, 2)
    expect(page.locator(".tally-side.is-culprit")).to_contain_text("2 ranks")


def test_on_paper_the_record_is_one_page(page: Page, site: Site) -> None:
    page.goto(site.url + HUNG)
    page.emulate_media(media="print")

    for shown in ("h1", ".tally", ".culprit", ".way", ".evidence"):
        expect(page.locator(shown).first).to_be_visible()
    for hidden in (".actions", "#stacks", "#lanes", "#do .commands", ".top"):
        expect(page.locator(hidden).first).to_be_hidden()
    assert page.pdf(format="A4").count(b"/Type /Page\n") <= 1


def test_hostile_texts_stay_texts(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/incidents/inc-hostile-all")

    assert page.evaluate("document.querySelectorAll('main script').length") == 0
    expect(page.locator(".lead").first).to_contain_text('<script>alert("x")</script>')


def _now(site: Site, **changes: object) -> None:
    """The hung incident gets a newer verdict."""
    old = site.scene.incidents[0]
    said = dataclasses.replace(old.verdict, **changes)  # type: ignore[arg-type]
    site.scene.incidents[0] = making.incident(said, captures=old.captures)
    assert site.scene.incidents[0].state is model.IncidentState.CONFIRMED
    site.publish("incident:inc-hung")
