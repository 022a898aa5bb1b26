"""Processes of the stage: what they inherit, and that none is left."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil
import pytest

from hangwatch_server.demo import processes

pytestmark = pytest.mark.integration


def test_a_setting_of_the_persons_shell_stays_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HANGWATCH_DATABASE_URL", "postgresql://the-real-one")
    log = tmp_path / "log"
    program = "import os; print({k: v for k, v in os.environ.items() if 'HANGWATCH' in k})"

    started = processes.start([sys.executable, "-c", program], {"HANGWATCH_TOKEN": "t"}, log)
    started.wait(90)

    assert log.read_text().strip() == "{'HANGWATCH_TOKEN': 't'}"


def test_what_carries_the_mark_is_ended_without_a_handle(tmp_path: Path) -> None:
    program = "import signal; signal.pause()"
    mark = {processes.STAGE_MARK: "mark of this test"}
    started = processes.start([sys.executable, "-c", program], mark, tmp_path / "log")

    processes.end_marked(processes.STAGE_MARK, "mark of this test")

    assert not psutil.pid_exists(started.pid)
    started.wait()  # psutil has reaped it; this tells Popen
