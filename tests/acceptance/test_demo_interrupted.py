"""`hangwatch demo` that is interrupted while it starts: nothing of it is left."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.support import postgres as databases
from tests.support import running_server, waiting

pytestmark = pytest.mark.acceptance

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture
def folder() -> Iterator[Path]:
    with databases.data_folder() as path:
        yield path


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number.name)
def test_an_interrupted_demo_leaves_no_process_and_no_folder(
    folder: Path, number: signal.Signals
) -> None:
    demo = subprocess.Popen(
        [*running_server.hangwatch(), "demo", "--once"],
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        waiting.until(lambda: len(_processes_of(folder)) > 1, 120, "the demo's server has started")
        demo.send_signal(number)
        code = demo.wait(120)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(demo.pid, signal.SIGKILL)
        demo.wait()

    assert code == 130
    assert _processes_of(folder) == []
    assert list(folder.iterdir()) == []


def _processes_of(folder: Path) -> list[psutil.Process]:
    """The demo and all it started have this folder for temporary files."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("TMPDIR") == str(folder):
                found.append(process)
    return found
