"""The merged stack tree in a browser: folding, keys, search, links, what is moving, and "more"."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect
from tests.web.conftest import Site

from hangwatch_server.pages import stack_view

AFTER = "/captures/cap-after"
INCIDENT = "/incidents/inc-hung"


def test_odd_ranks_come_first_and_each_branch_says_how_many(page: Page, site: Site) -> None:
    page.goto(site.url + AFTER)

    counts = page.locator(".stack-tree .segment-count")

    expect(counts).to_have_text(["64 ranks", "1 rank", "2 ranks", "61 ranks", "1 rank"])
    expect(page.locator(".segment .segment .ranks")).to_have_text(["5", "9-10", "0-4,6-8,11-63"])


def test_frozen_and_moving_are_told_by_word_and_shape_with_what_it_was(
    page: Page, site: Site
) -> None:
    page.goto(site.url + AFTER)
    moving = page.locator(".segment.is-moving")
    frozen = page.locator(".segment.is-frozen").first

    expect(moving.locator(".motion")).to_have_text("moving")
    expect(moving.locator(".was")).to_have_text("was at train.py:147 in train, inside all_reduce")
    expect(frozen.locator(".motion")).to_have_text("frozen")
    shapes = [part.locator(".motion use").get_attribute("href") for part in (moving, frozen)]
    assert shapes == ["#m-moving", "#m-frozen"]


def test_framework_frames_are_hidden_until_asked_for_and_the_address_keeps_it(
    page: Page, site: Site
) -> None:
    page.goto(site.url + AFTER)
    engine = page.locator(".frame", has_text="_engine_run_backward")
    expect(engine).to_be_hidden()
    expect(page.locator(".frame", has_text="all_reduce")).to_be_visible()  # where it stands

    page.get_by_label("hide framework frames").uncheck()
    expect(engine).to_be_visible()
    expect(page).to_have_url(f"{site.url}{AFTER}?framework=true")
    page.reload()

    expect(engine).to_be_visible()


def test_a_run_of_framework_frames_opens_by_itself(page: Page, site: Site) -> None:
    page.goto(site.url + AFTER)

    page.locator(".run-open", has_text="3 framework frames").first.click()

    expect(page.locator(".frame", has_text="_next_data")).to_be_visible()
    expect(page.locator(".frame", has_text="_engine_run_backward")).to_be_hidden()


def test_search_counts_its_matches_and_n_walks_them(page: Page, site: Site) -> None:
    page.goto(site.url + AFTER)
    stacks = page.locator(".stacks")
    stacks.get_by_text("Fold all").click()

    stacks.get_by_placeholder("Search frames").fill("fetch")
    expect(page.locator("[data-stack-found]")).to_have_text("2 found")
    expect(stacks.locator(".frame.is-hit")).to_have_count(2)
    page.keyboard.press("Enter")
    expect(page.locator("[data-stack-found]")).to_have_text("1 of 2")
    stacks.locator("summary").first.focus()
    page.keyboard.press("n")
    expect(page.locator("[data-stack-found]")).to_have_text("2 of 2")
    page.keyboard.press("Shift+N")

    expect(page.locator("[data-stack-found]")).to_have_text("1 of 2")
    expect(stacks.locator(".frame.is-current")).to_be_in_viewport()


def test_arrow_keys_walk_and_fold_the_tree(page: Page, site: Site) -> None:
    page.goto(site.url + AFTER)
    focused = page.locator(":focus")
    page.locator(".stack-tree summary").first.focus()

    page.keyboard.press("ArrowDown")
    expect(focused).to_contain_text("1 rank")
    page.keyboard.press("ArrowLeft")
    assert focused.evaluate("at => at.parentElement.open") is False
    page.keyboard.press("ArrowLeft")
    expect(focused).to_contain_text("64 ranks")
    page.keyboard.press("ArrowRight")
    expect(focused).to_contain_text("1 rank")
    page.keyboard.press("End")
    expect(focused).to_contain_text("loader workers")
    page.keyboard.press("Home")

    expect(focused).to_contain_text("64 ranks")


def test_a_link_to_a_rank_shows_its_branch(page: Page, site: Site) -> None:
    page.goto(f"{site.url}{AFTER}#rank-10")

    target = page.locator(".segment[data-shown]")

    expect(target.locator("summary")).to_contain_text("9-10")
    expect(target).to_be_in_viewport()


def test_a_link_to_a_signature_marks_its_branch(page: Page, site: Site) -> None:
    page.goto(f"{site.url}{INCIDENT}/stacks?signature=a1#rank-5")

    expect(page.locator("h1")).to_have_text("Rank 5 holds up 7 ranks")
    expect(page.locator(".segment.is-wanted")).to_have_count(1)
    expect(page.locator(".segment.is-wanted .segment-count")).to_have_text("1 rank")
    expect(page.locator(".segment-culprit")).to_have_count(1)


def test_a_link_to_a_stack_that_has_moved_on_says_so(page: Page, site: Site) -> None:
    page.goto(f"{site.url}{AFTER}?signature=feedbeef")

    expect(page.locator(".stack-note")).to_contain_text("may have moved on")
    page.get_by_role("link", name="Show all stacks").click()
    expect(page.locator(".stack-note")).to_have_count(0)


def test_a_wide_tree_comes_in_parts(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/captures/cap-wide")
    branches = page.locator(".segment .segment")
    expect(branches).to_have_count(stack_view.MAX_SIBLINGS)

    page.get_by_role("link", name="376 more branches").click()

    expect(branches).to_have_count(2 * stack_view.MAX_SIBLINGS)
    expect(page.get_by_role("link", name="352 more branches")).to_be_visible()
    expect(page.locator(":focus")).to_contain_text("24")


def test_a_rank_outside_the_shown_part_is_fetched(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/captures/cap-wide#rank-377")

    expect(page.locator(".segment[data-shown] .segment-count")).to_have_text("1 rank")
    expect(page.locator(".segment[data-shown] .ranks")).to_have_text("377")


def test_search_reaches_branches_that_are_not_shown(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/captures/cap-wide")

    page.get_by_placeholder("Search frames").fill("train.py:1377")
    expect(page.locator("[data-stack-found]")).to_have_text("0 found")
    page.get_by_role("button", name="in all 401 branches").click()

    expect(page.locator(".frame.is-hit")).to_have_count(1)
    expect(page.locator(".segment .segment .ranks")).to_have_text("377")


@pytest.mark.parametrize("address", ["/captures/cap-odd", "/captures/cap-odd?framework=true"])
def test_hostile_frames_are_text_and_deep_stacks_are_folded(
    page: Page, site: Site, address: str
) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(site.url + address)

    assert page.locator("#live script").count() == 0
    assert "\u202e" not in page.inner_text("#live")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    expect(page.locator(".run-open", has_text="168 more frames")).to_be_visible()


def test_two_captures_are_compared(page: Page, site: Site) -> None:
    page.goto(site.url + AFTER)

    page.get_by_role("link", name="the capture of").click()

    expect(page.locator("h1")).to_have_text("2 ranks moved, 62 did not")
    expect(page.locator(".moves tbody tr").first).to_contain_text("train.py:63 in write")
    page.locator(".moves a").first.click()
    expect(page.locator(".segment.is-wanted .ranks")).to_have_text("9-10")


def test_captures_of_a_job_are_listed_and_taken_there(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/jobs/a1b2c3d4e5f6/captures")

    expect(page.locator(".captures tbody tr")).to_have_count(6)
    expect(page.get_by_role("button", name="Capture now")).to_have_count(0)  # a reader may not


def test_a_capture_under_way_says_which_nodes_still_answer(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/captures/cap-taking")

    expect(page.locator(".capture-nodes li")).to_have_text(["node-a 3", "node-b 4-5"])
    expect(page.locator(".meta").first).to_contain_text("6 of 8 ranks answered")


def test_downloads_lead_to_the_api(page: Page, site: Site) -> None:
    page.goto(site.url + AFTER)
    page.locator("summary", has_text="Export").click()

    links = page.locator("#export a[download]")

    addresses = [link.get_attribute("href") for link in links.all()]
    assert addresses == [
        "/api/v1/captures/cap-after/speedscope",
        "/api/v1/captures/cap-after/chrome-trace",
    ]
