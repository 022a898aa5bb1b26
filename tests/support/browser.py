"""A headless browser for tests: Playwright's own if installed, else the system's Chromium."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, Playwright

SYSTEM_BROWSER = Path("/usr/bin/chromium")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def launch(playwright: Playwright) -> Browser:
    own = Path(playwright.chromium.executable_path)
    path = own if own.exists() else SYSTEM_BROWSER
    return playwright.chromium.launch(executable_path=path, args=list(FLAGS))
