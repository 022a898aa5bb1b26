"""`hangwatch demo` or `simulate`, interrupted while it starts: nothing of it is left."""

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

INTERRUPTED = [
    ("demo", signal.SIGINT),
    ("demo", signal.SIGTERM),
    ("demo", signal.SIGHUP),
    ("simulate", signal.SIGTERM),
]


@pytest.fixture
def folder() -> Iterator[Path]:
    with databases.data_folder() as path:
        yield path


@pytest.mark.parametrize(("command", "number"), INTERRUPTED)
def test_an_interrupted_command_leaves_no_process_and_no_folder(
    folder: Path, command: str, number: signal.Signals
) -> None:
    own = subprocess.Popen(
        [*running_server.hangwatch(), command, "--once"],
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        waiting.until(lambda: len(_processes_of(folder)) > 1, 120, "its server has started")
        own.send_signal(number)
        code = own.wait(120)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(own.pid, signal.SIGKILL)
        own.wait()

    assert code == 130
    assert _processes_of(folder) == []
    assert list(folder.iterdir()) == []


def _processes_of(folder: Path) -> list[psutil.Process]:
    """The command and all it started have this folder for temporary files."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("TMPDIR") == str(folder):
                found.append(process)
    return found
