"""The page of a capture of 16,384 stacks: python bench/stack_page.py [ranks] [distinct stacks]

Reads stored parts as the database gives them, merges, folds and renders the page, and opens it in
Chromium. The stacks are made up; by default a few ranks differ, and with as many distinct stacks as
ranks the page comes in parts.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import TypeVar

import msgspec
from fastapi import Request
from playwright.sync_api import sync_playwright
from tests.support.browser import launch
from tests.web import making, stack_scenes

from hangwatch_agent import wire
from hangwatch_server import assets, stacks
from hangwatch_server.db import codec
from hangwatch_server.model import Tree
from hangwatch_server.pages import render, stack_view

T = TypeVar("T")


def stored(ranks: int, distinct: int) -> list[str]:
    """The stacks of parts as the driver hands them over: JSON text."""
    found = []
    for rank in range(ranks):
        line = 1000 + rank % distinct if rank % 997 == 5 or distinct > ranks // 2 else 147
        places = (*stack_scenes.WAITING[:-3], ("train", stack_scenes.TRAIN, line))
        made = stack_scenes.part(rank, ("main", (*places, *stack_scenes.WAITING[-2:])))
        found.append(codec.dumps(made.stacks))
    return found


def timed(name: str, work: Callable[[], T]) -> T:
    times = []
    for _ in range(3):
        started = time.process_time()
        result = work()
        times.append(time.process_time() - started)
    print(f"{name:<44} {statistics.median(times):>8.3f} s of a core")
    return result


def page(ranks: int, tree: Tree) -> str:
    path = "/captures/c"
    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": []}
    request = Request({**scope, "scheme": "http", "server": ("bench", 80)})
    view = stack_view.of(tree, request, stack_view.Choice(), base=path)
    values = {
        "title": "Stacks",
        "section": "jobs",
        "capture": making.capture("c", "job", f"0-{ranks - 1}"),
        "asked": ranks,
        "answered": ranks,
        "heard": ranks,
        "waited_for": {},
        "gaps": (),
        "max_gaps": 0,
        "is_taking": False,
        "others": [],
        "earlier": None,
        "stacks": view,
    }
    return bytes(render.page(request, "capture", values).body).decode()


def in_browser(text: str) -> float:
    """From the page's bytes to a tree that a key opens, in seconds."""
    web = assets.web()
    with sync_playwright() as playwright:
        browser = launch(playwright)
        opened = browser.new_page()
        kinds = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}

        def answer(route: object) -> None:
            path = route.request.url.split("bench.test", 1)[1].split("?")[0]  # type: ignore[attr-defined]
            if path.endswith("/live"):
                route.abort()  # type: ignore[attr-defined]
            elif path == "/captures/c":
                route.fulfill(body=text, content_type="text/html")  # type: ignore[attr-defined]
            else:
                kind = kinds.get(path.rsplit(".", 1)[-1], "text/plain")
                route.fulfill(body=(web / path[1:]).read_bytes(), content_type=kind)  # type: ignore[attr-defined]

        opened.route("**/*", answer)
        started = time.perf_counter()
        opened.goto("http://bench.test/captures/c", wait_until="domcontentloaded")
        opened.locator(".segment > summary").first.focus()
        opened.keyboard.press("ArrowDown")
        took = time.perf_counter() - started
        browser.close()
    return took


def main() -> None:
    ranks = int(sys.argv[1]) if len(sys.argv) > 1 else 16_384
    distinct = int(sys.argv[2]) if len(sys.argv) > 2 else 13
    rows = stored(ranks, distinct)
    print(f"{ranks} ranks, about {distinct} distinct stacks; bar 1 s")
    decode = msgspec.json.Decoder(tuple[wire.ProcessStacks, ...]).decode  # as db.captures does
    read = timed("reading the stored stacks", lambda: [decode(row) for row in rows])
    ranked = [stacks.RankStacks(rank, found) for rank, found in enumerate(read)]
    roots, classes = timed("merging", lambda: stacks.merge(ranked))
    tree = Tree(capture="c", roots=roots, classes=classes, missing=())
    text = timed("folding and rendering the page", lambda: page(ranks, tree))
    print(f"{'page':<44} {len(text.encode()) / 1000:>8.1f} kB")
    print(f"{'Chromium: until a key walks the tree':<44} {in_browser(text):>8.3f} s")


if __name__ == "__main__":
    main()
