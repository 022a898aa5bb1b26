"""What Chromium says of a job page: when its grid was drawn, long tasks, bytes of its stream."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page

KB = 1000
# Notes when the grid is drawn, and every long task; runs before the page's own scripts.
WATCHING = """
window.longTasks = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) window.longTasks.push([entry.startTime, entry.duration]);
}).observe({ type: "longtask", buffered: true });
new MutationObserver((_, observer) => {
  if (!document.querySelector("#grid[data-drawn]")) return;
  window.drawnMs = performance.now();
  observer.disconnect();
}).observe(document, { subtree: true, childList: true, attributes: true });
"""


def watch(page: Page) -> None:
    """Have every page that is opened from now on note its long tasks and when its grid is drawn."""
    page.add_init_script(WATCHING)


def drawn(page: Page, url: str) -> tuple[float, float, float]:
    """Open a job's page that is being watched: (s until its first byte, s until drawn, kB)."""
    page.goto(url, timeout=60_000)
    page.wait_for_function("window.drawnMs !== undefined", timeout=60_000)
    timing = page.evaluate("performance.getEntriesByType('navigation')[0].toJSON()")
    drawn_ms = page.evaluate("window.drawnMs")
    first_ms = timing["responseStart"]
    return first_ms / 1000, (drawn_ms - first_ms) / 1000, timing["encodedBodySize"] / KB


class Stream:
    """Counts the bytes of the page's live stream as they travel."""

    def __init__(self, page: Page) -> None:
        self.bytes = 0
        self._requests: set[str] = set()
        session = page.context.new_cdp_session(page)
        session.send("Network.enable")
        session.on("Network.requestWillBeSent", self._requested)
        session.on("Network.dataReceived", self._received)

    def _requested(self, event: dict[str, Any]) -> None:
        if "/live" in event["request"]["url"]:
            self._requests.add(event["requestId"])

    def _received(self, event: dict[str, Any]) -> None:
        if event["requestId"] in self._requests:
            self.bytes += event["encodedDataLength"]
