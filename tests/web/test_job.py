"""The page of one job: colourings, lens, filter, mesh and the line of progress, in a browser."""

from __future__ import annotations

import dataclasses

import pytest
from playwright.sync_api import Page, expect
from tests.web import scenes, wide
from tests.web.conftest import Site

from hangwatch_server import model

pytestmark = pytest.mark.web

HUNG_JOB = "a1b2c3d4e5f6"
HUNG = f"/jobs/{HUNG_JOB}"
WIDE = f"/jobs/{wide.JOB}"
CULPRIT = wide.SMALL.size * 3 // 8 + 5
# The colour at a place of the grid, as "r,g,b,a", read from the canvas itself.
COLOUR = """(canvas, [x, y]) => {
  const scale = canvas.width / canvas.clientWidth;
  const dot = canvas.getContext("2d").getImageData(x * scale, y * scale, 1, 1).data;
  return Array.from(dot).join(",");
}"""


def test_the_colouring_is_in_the_address_and_in_the_legend(page: Page, site: Site) -> None:
    page.goto(site.url + HUNG)

    page.get_by_role("link", name="condition").click()

    expect(page).to_have_url(f"{site.url}{HUNG}?by=condition#ranks")
    expect(page.locator(".choices [aria-current]")).to_have_text("condition")
    expect(page.locator(".legend-word")).to_have_text(["in its dataloader", "nothing odd"])


def test_a_filter_leaves_its_ranks_bright_and_goes_with_one_click(page: Page, site: Site) -> None:
    page.goto(f"{site.url}{HUNG}?by=age")
    page.get_by_label("Show", exact=True).fill("1,7")
    page.get_by_label("Show", exact=True).press("Enter")

    expect(page).to_have_url(f"{site.url}{HUNG}?by=age&ranks=1%2C7#ranks")
    expect(page.locator(".each-rank tbody tr")).to_have_count(2)
    expect(page.locator("#grid")).to_have_attribute("data-drawn", "8")
    faded, bright = colour_at(page, 14), colour_at(page, 42)  # ranks 0 and 1
    assert faded != bright
    page.get_by_role("link", name="Show all ranks again").click()

    expect(page).to_have_url(f"{site.url}{HUNG}?by=age#ranks")
    expect(page.locator(".each-rank tbody tr")).to_have_count(8)


def test_a_range_that_cannot_be_read_is_explained(page: Page, site: Site) -> None:
    page.goto(f"{site.url}{HUNG}?ranks=0-x")

    expect(page.locator(".problem")).to_contain_text("0-x")
    expect(page.locator(".each-rank tbody tr")).to_have_count(8)


def test_a_group_of_the_table_becomes_the_lens(page: Page, site: Site) -> None:
    page.goto(site.url + HUNG)

    page.locator(".groups").get_by_role("link", name="dp-1").click()

    expect(page.locator(".legend")).to_contain_text("1 behind")
    expect(page.locator(".legend")).to_contain_text("in no such group")
    page.locator("#grid canvas").focus()
    expect(page.locator("#grid .tip")).to_contain_text("at #1041, 1 behind the front")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#grid .tip")).not_to_contain_text("behind")


def test_the_lens_is_chosen_from_a_list_too(page: Page, site: Site) -> None:
    page.goto(f"{site.url}{HUNG}?by=lag")

    page.get_by_label("of", exact=True).select_option(label="world")

    expect(page.locator(".legend-word")).to_have_text(["at the front"])
    expect(page.locator(".row-chosen .cell-name")).to_have_text("world")


def test_a_lens_whose_group_is_gone_says_so(page: Page, site: Site) -> None:
    page.goto(f"{site.url}{HUNG}?by=lag&lens=longgone")

    expect(page.locator(".problem")).to_contain_text("This group is gone")


def test_digits_jump_to_a_rank(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/jobs/f6a1b2c3d4e5")
    page.locator("#grid canvas").focus()

    page.keyboard.type("311")

    expect(page.locator("#grid-reading")).to_contain_text("rank 311,")


def test_shift_enter_adds_a_rank_to_the_filter(page: Page, site: Site) -> None:
    page.goto(f"{site.url}{HUNG}?ranks=5")
    page.locator("#grid canvas").focus()

    page.keyboard.press("Home")
    page.keyboard.press("Shift+Enter")

    expect(page).to_have_url(f"{site.url}{HUNG}?ranks=5,0#ranks")


def test_ranks_not_heard_lately_are_hatched(page: Page, site: Site) -> None:
    page.goto(site.url + HUNG)
    expect(page.locator("#grid")).to_have_attribute("data-drawn", "8")
    plain = page.locator("#grid canvas").evaluate("canvas => canvas.toDataURL()")

    site.scene.ranks[HUNG_JOB] = tuple(
        dataclasses.replace(row, link=model.Link.LATE, age_s=7.0)
        for row in site.scene.ranks[HUNG_JOB]
    )
    site.publish(f"job:{HUNG_JOB}")

    page.wait_for_function(
        "before => document.querySelector('#grid canvas').toDataURL() !== before", arg=plain
    )
    page.locator("#grid canvas").focus()
    expect(page.locator("#grid .tip")).to_contain_text("not heard lately")
    expect(page.locator("#grid .tip")).to_contain_text("heard 5 s ago")


def test_a_paused_grid_keeps_still_and_catches_up(page: Page, site: Site) -> None:
    page.goto(site.url + HUNG)
    expect(page.locator("#grid")).to_have_attribute("data-drawn", "8")
    page.evaluate("document.addEventListener('data', () => { document.body.dataset.came = '1'; })")
    page.keyboard.press("p")
    still = page.locator("#grid canvas").evaluate("canvas => canvas.toDataURL()")
    page.evaluate("delete document.body.dataset.came")

    site.scene.ranks[HUNG_JOB] = tuple(
        dataclasses.replace(row, state="healthy") for row in site.scene.ranks[HUNG_JOB]
    )
    site.publish(f"job:{HUNG_JOB}")
    expect(page.locator("body")).to_have_attribute("data-came", "1")
    assert page.locator("#grid canvas").evaluate("canvas => canvas.toDataURL()") == still
    page.keyboard.press("p")

    page.wait_for_function(
        "before => document.querySelector('#grid canvas').toDataURL() !== before", arg=still
    )


def test_the_line_of_progress_is_drawn_and_told_in_words(page: Page, site: Site) -> None:
    page.goto(site.url + HUNG)

    expect(page.locator("#progress-chart canvas")).to_be_visible()
    says = page.locator("#progress-says")
    expect(says).to_contain_text("calls per second and rank on average")
    expect(says).to_contain_text("suspected at")
    expect(says).to_contain_text("In phase checkpoint from")
    expect(page.locator(".progress-now")).to_contain_text("is under the 10 s floor")


def test_the_line_of_a_job_that_is_over_is_drawn_where_it_was(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/jobs/3a4b5c6d7e00")

    expect(page.locator("#progress .faint").first).to_contain_text("that it was seen")
    expect(page.locator("#progress-says")).to_contain_text("Over 30 min 00 s")
    drawn = page.locator("#progress-chart canvas").evaluate(
        """(canvas) => {
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          let count = 0;
          for (let at = 0; at < data.length; at += 4) {
            if (data[at] === 47 && data[at + 1] === 86 && data[at + 2] === 198) count += 1;
          }
          return count;
        }"""
    )
    assert drawn > 100  # pixels in the accent's colour


def test_the_line_tells_its_times_in_the_chosen_zone(page: Page, site: Site) -> None:
    page.goto(site.url + HUNG)
    expect(page.locator("#progress-says")).to_contain_text("suspected at")

    page.keyboard.press("u")

    expect(page.locator("#progress-says")).to_contain_text("UTC")


def test_nodes_that_are_not_heard_come_first_with_what_they_lack(page: Page, site: Site) -> None:
    page.goto(f"{site.url}/jobs/e5f6a1b2c3d4")

    row = page.locator(".depths tbody tr").first
    expect(row).to_contain_text("node-b")
    expect(row).to_contain_text("lost")
    expect(row).to_contain_text("0 of 4")


# Counts the marks that are drawn.
COUNTING = """
window.marks = 0;
const draw = CanvasRenderingContext2D.prototype.drawImage;
CanvasRenderingContext2D.prototype.drawImage = function (...given) {
  window.marks += 1;
  return draw.apply(this, given);
};
"""


class TestSmallCells:
    """So many ranks that a culprit's mark is drawn larger than its cell."""

    @pytest.fixture
    def scene(self) -> scenes.Scene:
        return wide.scene(wide.LARGE, is_hung=True)

    def test_only_what_changed_is_drawn_and_the_culprit_stays_on_top(
        self, page: Page, site: Site
    ) -> None:
        page.add_init_script(COUNTING)
        page.goto(site.url + WIDE)
        expect(page.locator("#grid")).to_have_attribute("data-drawn", str(wide.LARGE.size))
        canvas = page.locator("#grid canvas")
        canvas.focus()  # begins at the culprit
        frame, ring = canvas.bounding_box(), page.locator("#grid .grid-ring").bounding_box()
        assert frame is not None
        assert ring is not None
        middle = [
            ring["x"] + ring["width"] / 2 - frame["x"],
            ring["y"] + ring["height"] / 2 - frame["y"],
        ]
        colour, before = canvas.evaluate(COLOUR, middle), canvas.evaluate("c => c.toDataURL()")
        page.evaluate("window.marks = 0")

        culprit = wide.LARGE.size * 3 // 8 + 5
        site.scene.ranks[wide.JOB] = tuple(
            dataclasses.replace(row, state="healthy", waits_in="")
            if abs(row.rank - culprit) == 1
            else row
            for row in site.scene.ranks[wide.JOB]
        )
        site.publish(f"job:{wide.JOB}")

        page.wait_for_function(
            "before => document.querySelector('#grid canvas').toDataURL() !== before", arg=before
        )
        assert canvas.evaluate(COLOUR, middle) == colour
        assert 0 < page.evaluate("window.marks") < 10


class TestMesh:
    """A job whose groups make a mesh of tensor, data and pipeline ranks."""

    @pytest.fixture
    def scene(self) -> scenes.Scene:
        return wide.scene(wide.SMALL, is_hung=True)

    def test_the_dimensions_are_named_and_lead_to_their_lens(self, page: Page, site: Site) -> None:
        page.goto(site.url + WIDE)
        expect(page.locator("#mesh .block-head a")).to_have_text(["tp", "dp", "pp"])

        page.locator("#mesh").get_by_role("link", name="dp").click()

        expect(page).to_have_url(f"{site.url}{WIDE}?by=lag&lens=family:dp#ranks")
        expect(page.locator(".legend")).to_contain_text("1 behind 1")

    def test_the_mesh_is_walked_by_keys_and_tells_the_place(self, page: Page, site: Site) -> None:
        page.goto(site.url + WIDE)
        expect(page.locator("#mesh .grid")).to_have_attribute("data-drawn", "512")

        page.locator("#mesh canvas").focus()

        place = f"tp {CULPRIT % 8}, dp {CULPRIT // 8 % 8}, pp {CULPRIT // 64}"
        expect(page.locator("#mesh-reading")).to_contain_text(place)
        expect(page.locator("#mesh-reading")).to_contain_text("culprit")

    def test_rows_and_columns_are_chosen_and_stay_in_the_address(
        self, page: Page, site: Site
    ) -> None:
        page.goto(site.url + WIDE)
        expect(page.locator("#mesh .grid")).to_have_attribute("data-drawn", "512")

        page.get_by_label("Rows").select_option(label="pp")

        expect(page).to_have_url(f"{site.url}{WIDE}?mesh=2.0.5.0.3")
        page.reload()
        expect(page.get_by_label("Rows")).to_have_value("2")
        page.get_by_role("link", name="last beat").click()
        expect(page).to_have_url(f"{site.url}{WIDE}?by=age&mesh=2.0.5.0.3#ranks")
        expect(page.get_by_label("Rows")).to_have_value("2")

    def test_calm_groups_are_one_line_and_the_waiting_one_is_first(
        self, page: Page, site: Site
    ) -> None:
        page.goto(site.url + WIDE)

        rows = page.locator(".groups tbody tr")
        expect(rows.first).to_contain_text("26 MB float")
        expect(page.locator(".row-fold").first).to_contain_text("63 more dp groups of 8")
        page.locator(".row-fold").get_by_role("link", name="dp groups").click()

        expect(rows).to_have_count(64 + 1 + 2)  # each dp group, world, and a line for tp and for pp


def colour_at(page: Page, x: int) -> str:
    """In the first line of cells of a job of few ranks."""
    found: str = page.locator("#grid canvas").evaluate(COLOUR, [x, 34])
    return found
