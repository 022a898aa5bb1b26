"""The page of a large job in Chromium: its size, the time until it can be used, and how calmly it
takes updates. Run `python bench/job_page.py`; prints a table.

The real routes, templates and stream are shown over a made-up board of a job with tensor, data
and pipeline groups (tests/web/wide.py), so what is measured is the page, not the agents. The first
visit is that of a new browser, which has neither styles nor scripts, to a server that has shown the
page before. Updates at ten a second are handed to the page's script as the stream would; long tasks
are the browser's own.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx
from playwright.sync_api import Browser, Page, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.page_watch import Stream, drawn, watch
from tests.support.browser import launch
from tests.web import preview, scenes, serving, wide

from hangwatch_server import garbage
from hangwatch_server.model import RankRow
from hangwatch_server.pages import job_data, rank_grid

SHAPES = {512: wide.SMALL, 4096: wide.LARGE, 16384: wide.LARGEST}
UPDATES_PER_S = 10
UPDATES_S = 10
CALM_S = 20
SETTLE_S = 1.5
LONG_MS = 50
KB = 1000
# Hands one update after the other to the page; resolves with how long each took, in ms.
UPDATING = """async ([texts, count, everyMs]) => {
  const took = [];
  for (let at = 0; at < count; at += 1) {
    const startMs = performance.now();
    document.dispatchEvent(new CustomEvent("data", { detail: { data: texts[at % texts.length] } }));
    took.push(performance.now() - startMs);
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, everyMs - took[at])));
  }
  return took;
}"""


@dataclasses.dataclass(frozen=True, slots=True)
class Visit:
    server_s: float  # until the page's first byte
    interactive_s: float  # from then until the grid is drawn and answers
    long_ms: float  # the longest task until then and for as long as the page still loads


@dataclasses.dataclass(frozen=True, slots=True)
class Figures:
    ranks: int
    page_kb: float  # packed, as it travelled
    first: Visit
    again: Visit
    update_ms: float  # the slowest of the updates, within its own task
    updates_long: int  # tasks over 50 ms while they came
    delta_kb_s: float  # of the stream, of a healthy job


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, nargs="*", choices=sorted(SHAPES), default=[*SHAPES])
    asked = parser.parse_args()
    print("| ranks | page | first visit: server | interactive | longest task | second: server "
          "| interactive | longest task | slowest of 100 updates | tasks over 50 ms "
          "| stream, healthy |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    with sync_playwright() as playwright:
        for ranks in asked.ranks:
            with launch(playwright) as browser:
                print(_row(measure(browser, ranks)), flush=True)


def measure(browser: Browser, ranks: int) -> Figures:
    shape = SHAPES[ranks]
    with _served(wide.scene(shape, is_hung=True)) as (url, _):
        address = f"{url}/jobs/{wide.JOB}"
        garbage.seldom()  # as the server does
        httpx.get(address, timeout=60)  # a server just started has its templates still to read
        page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
        watch(page)
        page.wait_for_timeout(SETTLE_S * 1000)  # the browser itself has just been started
        first, page_kb = _visit(page, address)
        again, _ = _visit(page, address)
        took, long = _updates(page, shape)
        page.context.close()
    return Figures(
        ranks=ranks,
        page_kb=page_kb,
        first=first,
        again=again,
        update_ms=max(took),
        updates_long=long,
        delta_kb_s=_calm_kb_s(browser, shape),
    )


def _visit(page: Page, address: str) -> tuple[Visit, float]:
    server_s, drawn_s, page_kb = drawn(page, address)
    page.wait_for_timeout(SETTLE_S * 1000)
    tasks = page.evaluate("window.longTasks")
    long_ms = max((duration for _, duration in tasks), default=0.0)
    return Visit(server_s=server_s, interactive_s=drawn_s, long_ms=long_ms), page_kb


def _updates(page: Page, shape: wide.Shape) -> tuple[list[float], int]:
    """Each of ten updates a second changes one rank in a hundred."""
    rows = wide.scene(shape, is_hung=True).ranks[wide.JOB]
    texts = [_looks(rows, turn) for turn in range(4)]
    page.evaluate("window.longTasks.length = 0")
    everything = [texts, UPDATES_PER_S * UPDATES_S, 1000 / UPDATES_PER_S]
    took: list[float] = page.evaluate(UPDATING, everything)
    return took, int(page.evaluate(f"window.longTasks.filter(task => task[1] > {LONG_MS}).length"))


def _looks(rows: Sequence[RankRow], turn: int) -> str:
    changed = [
        dataclasses.replace(row, state="healthy", waits_in="") if row.rank % 100 == turn else row
        for row in rows
    ]
    grid = rank_grid.pack(changed)
    return job_data.Changes(job_data.digest(grid)).of(grid, (), 0.0)


def _calm_kb_s(browser: Browser, shape: wide.Shape) -> float:
    """What a healthy job's stream sends once it has begun, while steps and counters go on."""
    with _served(wide.scene(shape)) as (url, going):
        page = browser.new_context().new_page()
        stream = Stream(page)
        page.goto(f"{url}/jobs/{wide.JOB}")
        page.wait_for_selector("#grid[data-drawn]")
        going.set()
        page.wait_for_timeout(5_000)  # the first message says all once more
        stream.bytes = 0
        page.wait_for_timeout(CALM_S * 1000)
        page.context.close()
    return stream.bytes / KB / CALM_S


@contextlib.contextmanager
def _served(scene: scenes.Scene) -> Iterator[tuple[str, threading.Event]]:
    """The preview of a scene on a free port; its steps and counters go on once the event is set."""
    with serving.running() as served:
        preview.show(served.app, scene)
        going, over = threading.Event(), threading.Event()
        mover = threading.Thread(target=_move, args=(scene, served, going, over), daemon=True)
        mover.start()
        try:
            yield served.url, going
        finally:
            over.set()
            going.set()  # one that was never let go ends as well
            mover.join()


def _move(
    scene: scenes.Scene, served: serving.Served, going: threading.Event, over: threading.Event
) -> None:
    """Every second each group is twelve calls further and the job a step."""
    going.wait()
    while not over.wait(1.0):
        job = scene.jobs[0]
        scene.jobs[0] = dataclasses.replace(job, step=(job.step or 0) + 1)
        scene.groups[job.id] = tuple(
            dataclasses.replace(group, at=(group.at or 0) + 12) for group in scene.groups[job.id]
        )
        served.publish(f"job:{job.id}")


def _row(figures: Figures) -> str:
    return (
        f"| {figures.ranks:,} | {figures.page_kb:.0f} kB "
        f"| {_of_visit(figures.first)} | {_of_visit(figures.again)} "
        f"| {figures.update_ms:.1f} ms | {figures.updates_long} | {figures.delta_kb_s:.1f} kB/s |"
    )


def _of_visit(visit: Visit) -> str:
    return f"{visit.server_s:.2f} s | {visit.interactive_s:.2f} s | {visit.long_ms:.0f} ms"


if __name__ == "__main__":
    main()
