"""Takes the pictures of the documentation: each view, both themes, a real hang and a large job.

`python -m tests.web.screenshots` from the checkout writes docs/images, and puts them into the tour
of the pages. `--only real` plays a case of the demo, which needs torch; `--only simulated` plays
4,096 ranks over the real wire. A picture that fails costs no other one; `--missing` takes those
that are not there yet.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Browser, BrowserContext, Error, sync_playwright
from tests.support import waiting
from tests.support.browser import launch
from tests.support.receiver import Receiver

from hangwatch_agent import client
from hangwatch_server.demo import cases, processes
from hangwatch_server.demo.main import open_stage
from hangwatch_server.demo.stage import Stage, hangwatch

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
TOUR = ROOT / "docs" / "views.md"
ILLUSTRATED = {TOUR: "images", ROOT / "README.md": "docs/images"}
# A mark in the tour, and below it the picture that an earlier run put there.
MARK = re.compile(r"<!-- picture ([\w-]+): (.*?) -->\n(?:(?:<picture>|!\[).*\n)?")
CASE = "dataloader"
SIMULATED = ("--ranks", "4096", "--nodes", "64", "--fault", "dataloader")
SIZE = {"width": 1280, "height": 860}
DEADLINE_S = 300.0
LOAD_MS = 60_000.0
SETTLED_MS = 1500  # fonts, the grid and the first live update
Theme = Literal["light", "dark"]
THEMES: tuple[Theme, ...] = ("light", "dark")
VIEWS = (
    "overview",
    "job",
    "incident",
    "stacks",
    "captures",
    "capture",
    "compare",
    "rank",
    "incidents",
    "nodes",
    "node",
)
ONCE = (
    "channels",
    "deliveries",
    "silences",
    "offline",
    "settings",
    "tokens",
    "audit",
)  # the same whatever the job


@dataclass(frozen=True, slots=True)
class Picture:
    """One view of one job in one theme."""

    job: str
    view: str
    theme: Theme

    @property
    def file(self) -> Path:
        return IMAGES / f"{self.job}-{self.view}-{self.theme}.png"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=list(_SETS), help="one of the two sets of pictures")
    parser.add_argument("--missing", action="store_true", help="keep the pictures that are there")
    asked = parser.parse_args()
    IMAGES.mkdir(exist_ok=True)
    failed: list[str] = []
    try:
        with sync_playwright() as playwright:
            browser = launch(playwright)
            for name in [asked.only] if asked.only else _SETS:
                wanted = _wanted(name, are_kept=asked.missing)
                if wanted:
                    with _SETS[name]() as stage:
                        failed += _shoot_all(browser, stage, wanted)
            browser.close()
    finally:  # those that were taken are shown, whatever became of the others
        for file, folder in ILLUSTRATED.items():
            file.write_text(illustrated(file.read_text(encoding="utf-8"), folder), encoding="utf-8")
    if failed:
        print(f"not taken: {', '.join(failed)}; try again with --missing", file=sys.stderr)
    return 1 if failed else 0


def illustrated(text: str, folder: str) -> str:
    """The text with a picture below each mark that one was taken for; `folder` as it links to."""
    return MARK.sub(lambda mark: _picture(mark, folder), text)


def _picture(mark: re.Match[str], folder: str) -> str:
    name, words = mark[1], mark[2]
    head = f"<!-- picture {name}: {words} -->\n"
    if not all((IMAGES / f"{name}-{theme}.png").exists() for theme in THEMES):
        return mark[0]
    dark = f'<source media="(prefers-color-scheme: dark)" srcset="{folder}/{name}-dark.png">'
    light = f'<img alt="{words}" src="{folder}/{name}-light.png">'
    return f"{head}<picture>{dark}{light}</picture>\n"


@contextmanager
def _real() -> Iterator[Stage]:
    with open_stage(client.Client) as stage, Receiver.started() as receiver:
        stage.settings = {"HANGWATCH_OUTGOING_ALLOW": "127.0.0.0/8"}
        stage.start_server()
        _make_channels(stage, receiver)
        stage.start_agents()
        stage.start_job(cases.find(CASE), "gpt-7b")
        yield stage


def _make_channels(stage: Stage, receiver: Receiver) -> None:
    """A webhook that arrives, an escalation that waits, and a window that holds nothing back."""
    key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    secrets = {"url": f"{receiver.url}/hangwatch", "signing_key": key}
    robot = {"name": "requeue robot", "kind": "webhook", "secrets": secrets}
    pager = {
        "name": "pager",
        "kind": "pagerduty",
        "secrets": {"routing_key": "0" * 32},
        "matchers": [{"field": "job", "pattern": "gpt-*"}],
        "after_s": 900,
        "remind_s": 1800,
    }
    window = {
        "matchers": [{"field": "node", "pattern": "rack4-*"}],
        "for": "4h",
        "repeat": "weekly",
        "comment": "storage upgrade",
    }
    for path, body in (("/channels", robot), ("/channels", pager), ("/silences", window)):
        stage.client.post(path, body)


@contextmanager
def _simulated() -> Iterator[Stage]:
    with open_stage(client.Client) as stage:
        stage.start_server()
        command = [*hangwatch(), "simulate", "--server", stage.url, "--job", "llama-70b"]
        environment = {**os.environ, "HANGWATCH_TOKEN": stage.admin_token}
        process = subprocess.Popen([*command, *SIMULATED], env=environment)
        try:
            yield stage
        finally:
            processes.stop(process)


_SETS = {"real": _real, "simulated": _simulated}


def _wanted(name: str, *, are_kept: bool) -> list[Picture]:
    views = [*VIEWS, *(ONCE if name == "real" else ())]
    pictures = [Picture(name, view, theme) for theme in THEMES for view in views]
    return [one for one in pictures if not (are_kept and one.file.exists())]


def _shoot_all(browser: Browser, stage: Stage, wanted: Sequence[Picture]) -> list[str]:
    """Take pictures of a hang; the names of those that could not be taken."""
    verdict = _hang(stage)
    paths = addresses(verdict, _two_captures(stage, verdict))
    waiting.until(lambda: _has_been_told(stage), DEADLINE_S, "somebody is told")
    failed = []
    for theme in THEMES:
        context = browser.new_context(
            viewport=SIZE, color_scheme=theme, locale="en-GB", reduced_motion="reduce"
        )
        _sign_in(context, stage)
        for picture in (one for one in wanted if one.theme == theme):
            if not _shoot(context, stage.url + paths[picture.view], picture.file):
                failed.append(picture.file.name)
        context.close()
    return failed


def addresses(verdict: Mapping[str, Any], captures: Sequence[str]) -> dict[str, str]:
    """Where each view is, for the hang of this verdict and two captures of its culprit."""
    job, culprit = verdict["job"], verdict["culprits"][0]
    first, second = captures[:2]
    return {
        "overview": "/",
        "job": f"/jobs/{job}",
        "incident": f"/incidents/{verdict['incident']}",
        "stacks": f"/incidents/{verdict['incident']}/stacks",
        "captures": f"/jobs/{job}/captures",
        "capture": f"/captures/{first}",
        "compare": f"/captures/{second}/compare?before={first}",
        "rank": f"/jobs/{job}/ranks/{culprit['rank']}",
        "incidents": "/incidents",
        "nodes": "/nodes?sort=incidents",
        "node": f"/nodes/{culprit['node']}",
        "channels": "/channels",
        "deliveries": "/deliveries",
        "silences": "/silences?job=gpt-7b",
        "offline": "/offline",
        "settings": "/settings",
        "tokens": "/settings/tokens",
        "audit": "/settings/audit",
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

    return waiting.until(found, DEADLINE_S, "a hang with its evidence")


def _has_been_told(stage: Stage) -> bool:
    """Also where nobody is to be told."""
    has_channels = bool(stage.client.get("/channels")["items"])
    return not has_channels or bool(stage.client.get("/deliveries?state=sent")["items"])


def _two_captures(stage: Stage, verdict: Mapping[str, Any]) -> list[str]:
    """Captures of the culprit alone, oldest first, once there are two to compare."""
    culprit = str(verdict["culprits"][0]["rank"])

    def found() -> list[str] | None:
        taken = stage.client.get(f"/incidents/{verdict['incident']}/captures")
        own = [capture["id"] for capture in taken if capture["ranks"] == culprit]
        return own if len(own) > 1 else None

    return waiting.until(found, DEADLINE_S, "two captures of the culprit")


def _sign_in(context: BrowserContext, stage: Stage) -> None:
    page = context.new_page()
    page.goto(f"{stage.url}/login")
    page.get_by_label("Token").fill(stage.admin_token)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{stage.url}/")
    page.close()


def _shoot(context: BrowserContext, address: str, file: Path) -> bool:
    """One picture, in two attempts: a page of a busy machine may take its time."""
    for _ in range(2):
        page = context.new_page()
        try:
            page.goto(address, timeout=LOAD_MS)
            page.locator("h1").first.wait_for(timeout=LOAD_MS)
            page.wait_for_timeout(SETTLED_MS)
            file.write_bytes(page.screenshot(timeout=LOAD_MS))
        except Error as error:
            print(f"{file.name}: {error.message.splitlines()[0]}", file=sys.stderr, flush=True)
        else:
            print(f"{file.name}  {file.stat().st_size / 1000:.0f} kB", flush=True)
            return True
        finally:
            page.close()
    return False


if __name__ == "__main__":
    sys.exit(main())
