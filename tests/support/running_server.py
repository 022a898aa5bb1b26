"""A real server process for tests: its address, its admin token, and an end that is certain."""

from __future__ import annotations

import contextlib
import functools
import os
import queue
import re
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx
from tests.support import postgres

START_TIMEOUT_S = 120
STOP_TIMEOUT_S = 60
_READY = re.compile(r"is ready: (https?://\S+)/")
_TOKEN = re.compile(r"HANGWATCH_TOKEN=(hw_\S+)$")


@dataclass(slots=True)
class RunningServer:
    """A server that has said it is ready; `out` is what it has printed so far."""

    process: subprocess.Popen[str]
    url: str
    admin_token: str
    data_dir: Path

    def client(self, token: str | None = None) -> httpx.Client:
        """A client with the admin token, or another; "" sends none."""
        text = self.admin_token if token is None else token
        headers = {"authorization": f"Bearer {text}"} if text else {}
        return httpx.Client(
            base_url=self.url, headers=headers, timeout=60, trust_env=False, verify=_trusted()
        )

    def new_token(self, scope: str, node: str | None = None) -> str:
        body = {"name": f"{scope} of a test", "scopes": [scope], "node": node}
        with self.client() as client:
            answer = client.post("/api/v1/tokens", json=body).raise_for_status()
            return str(answer.json()["token"])

    def stop(self) -> int:
        """End it as an init system would; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_TIMEOUT_S)


@contextlib.contextmanager
def running(
    database_url: str, data_dir: Path, settings: Mapping[str, str] | None = None
) -> Iterator[RunningServer]:
    """`hangwatch serve` on a free port, until it has printed its address and first token."""
    command = [*hangwatch(), "serve", "--port", "0", "--data-dir", str(data_dir)]
    environment = {"HANGWATCH_DATABASE_URL": database_url, **(settings or {})}
    process = subprocess.Popen(
        command,
        env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield _ready(process, data_dir)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        assert process.stdout is not None
        process.stdout.close()


@contextlib.contextmanager
def on_fresh_database(
    migrated: str, settings: Mapping[str, str] | None = None
) -> Iterator[RunningServer]:
    """`running` on a database and a data folder of its own; `migrated`: the Postgres for tests.

    Alerts may go to receivers on this machine; secrets of channels lie in `secrets` of its folder.
    """
    with (
        postgres.fresh_database(migrated, postgres.TEMPLATE) as url,
        postgres.data_folder() as folder,
        running(url, folder, {**_for_alerts(folder), **(settings or {})}) as server,
    ):
        yield server


def _for_alerts(folder: Path) -> Mapping[str, str]:
    secrets = folder / "secrets"
    secrets.mkdir()
    return {
        "HANGWATCH_OUTGOING_ALLOW": "127.0.0.0/8",
        "HANGWATCH_SECRETS_DIR": str(secrets),
    }


@functools.cache
def _trusted() -> ssl.SSLContext:
    """Read once: it takes longer than most requests."""
    return ssl.create_default_context()


def hangwatch() -> list[str]:
    """The command of this very installation."""
    return [sys.executable, "-m", "hangwatch_agent"]


def _ready(process: subprocess.Popen[str], data_dir: Path) -> RunningServer:
    lines: queue.Queue[str | None] = queue.Queue()
    threading.Thread(target=_read, args=(process, lines), daemon=True).start()
    url, token, seen = "", "", []
    while line := lines.get(timeout=START_TIMEOUT_S):
        seen.append(line)
        if match := _READY.search(line):
            url = match.group(1)
        if match := _TOKEN.search(line.rstrip()):
            token = match.group(1)
        if "torchrun" in line:  # the last line that is always printed
            return RunningServer(process, url, token, data_dir)
    raise AssertionError("the server did not start:\n" + "".join(seen))


def _read(process: subprocess.Popen[str], lines: queue.Queue[str | None]) -> None:
    """Empty the pipe for as long as the server lives, so that it never blocks on its own log."""
    assert process.stdout is not None
    with contextlib.suppress(ValueError):
        for line in process.stdout:
            lines.put(line)
    lines.put(None)
