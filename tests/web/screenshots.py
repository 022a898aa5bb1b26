"""Takes the pictures of the documentation: each view, both themes, a real hang and a large job.

`python -m tests.web.screenshots` from the checkout writes docs/images, and puts them into the tour
of the pages. `--only real` plays a case of the demo, which needs torch; `--only simulated` plays
4,096 ranks over the real wire.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright
from tests.support.browser import launch

from hangwatch_agent import client
from hangwatch_server.demo import cases
from hangwatch_server.demo.main import open_stage
from hangwatch_server.demo.stage import Stage, hangwatch

DOCS = Path(__file__).parents[2] / "docs"
IMAGES = DOCS / "images"
TOUR = DOCS / "views.md"
# A mark in the tour, and below it the picture that an earlier run put there.
MARK = re.compile(r"<!-- picture ([\w-]+): (.*?) -->\n(?:<picture>.*</picture>\n)?")
CASE = "dataloader"
SIMULATED = ("--ranks", "4096", "--nodes", "64", "--fault", "dataloader")
SIZE = {"width": 1280, "height": 860}
DEADLINE_S = 300.0
SETTLED_MS = 1500  # fonts, the grid and the first live update
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=list(_SETS), help="one of the two sets of pictures")
    only = parser.parse_args().only
    with sync_playwright() as playwright:
        browser = launch(playwright)
        for name in [only] if only else _SETS:
            with _SETS[name]() as stage:
                _shoot_all(browser, stage, name)
        browser.close()
    TOUR.write_text(illustrated(TOUR.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


def illustrated(text: str) -> str:
    """The tour with a picture below each mark that one was taken for."""
    return MARK.sub(_picture, text)


def _picture(mark: re.Match[str]) -> str:
    name, words = mark[1], mark[2]
    head = f"<!-- picture {name}: {words} -->\n"
    if not (IMAGES / f"{name}-light.png").exists():
        return head
    dark = f'<source media="(prefers-color-scheme: dark)" srcset="images/{name}-dark.png">'
    light = f'<img alt="{words}" src="images/{name}-light.png">'
    return f"{head}<picture>{dark}{light}</picture>\n"


@contextmanager
def _real() -> Iterator[Stage]:
    with open_stage(client.Client) as stage:
        stage.start_server()
        stage.start_agents()
        stage.start_job(cases.find(CASE), "gpt-7b")
        yield stage


@contextmanager
def _simulated() -> Iterator[Stage]:
    with open_stage(client.Client) as stage:
        stage.start_server()
        command = [*hangwatch(), "simulate", "--server", stage.url, "--job", "llama-70b"]
        environment = {**os.environ, "HANGWATCH_TOKEN": stage.admin_token}
        with subprocess.Popen([*command, *SIMULATED], env=environment) as process:
            try:
                yield stage
            finally:
                process.terminate()


_SETS = {"real": _real, "simulated": _simulated}


def _shoot_all(browser: Browser, stage: Stage, name: str) -> None:
    verdict = _hang(stage)
    for theme in THEMES:
        context = browser.new_context(viewport=SIZE, color_scheme=theme, locale="en-GB")
        _sign_in(context, stage)
        for view, path in _views(verdict).items():
            page = context.new_page()
            _shoot(page, stage.url + path, IMAGES / f"{name}-{view}-{theme}.png")
            page.close()
        context.close()


def _views(verdict: dict[str, Any]) -> dict[str, str]:
    job, rank = verdict["job"], verdict["culprits"][0]["rank"]
    return {
        "overview": "/",
        "job": f"/jobs/{job}",
        "incident": f"/incidents/{verdict['incident']}",
        "stacks": f"/incidents/{verdict['incident']}/stacks",
        "rank": f"/jobs/{job}/ranks/{rank}",
        "incidents": "/incidents",
        "nodes": "/nodes?sort=incidents",
    }


def _hang(stage: Stage) -> dict[str, Any]:
    """The verdict once it is a hang whose evidence is stored."""

    def found() -> dict[str, Any] | None:
        with contextlib.suppress(client.ClientError):  # a busy server may answer late
            for job in stage.client.get("/jobs")["items"]:
                verdict: dict[str, Any] = job["verdict"]
                if verdict["state"] == "hung" and verdict["action"]["evidence_stored"]:
                    return verdict
        return None

    return _until(found)


def _until(look: Callable[[], dict[str, Any] | None]) -> dict[str, Any]:
    end_s = time.monotonic() + DEADLINE_S
    while time.monotonic() < end_s:
        if seen := look():
            return seen
        time.sleep(0.5)
    raise TimeoutError(f"no hang with evidence within {DEADLINE_S:.0f} s")


def _sign_in(context: BrowserContext, stage: Stage) -> None:
    page = context.new_page()
    page.goto(f"{stage.url}/login")
    page.get_by_label("Token").fill(stage.admin_token)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{stage.url}/")
    page.close()


def _shoot(page: Page, address: str, file: Path) -> None:
    page.set_default_timeout(DEADLINE_S * 1000)
    page.goto(address)
    page.locator("h1").first.wait_for()
    page.wait_for_timeout(SETTLED_MS)
    page.screenshot(path=file)
    print(f"{file.name}  {file.stat().st_size / 1000:.0f} kB", flush=True)


if __name__ == "__main__":
    sys.exit(main())
