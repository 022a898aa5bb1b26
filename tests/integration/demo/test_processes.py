"""Ending the stage's processes: all that belong to a job, and nobody else's."""

from __future__ import annotations

import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.support.waiting import until

from hangwatch_server.demo import processes

PARENT = "import subprocess; subprocess.run(['sleep', '600'], start_new_session=True)"


@pytest.fixture
def mark() -> str:
    return secrets.token_hex(8)


@pytest.fixture
def parent(mark: str, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process with a child in a session of its own, as torchrun's ranks are."""
    command = [sys.executable, "-I", "-S", "-c", PARENT]
    started = processes.start(command, {processes.MARK: mark}, tmp_path / "log")
    until(lambda: psutil.Process(started.pid).children(), 20, "the child runs")
    yield started
    processes.kill_family(started, mark)


def test_children_that_outlived_their_launcher_are_ended(
    parent: subprocess.Popen[bytes], mark: str
) -> None:
    (child,) = psutil.Process(parent.pid).children()
    parent.kill()
    parent.wait()
    assert child.is_running()

    processes.kill_family(parent, mark)

    until(lambda: not child.is_running() or child.status() == "zombie", 20, "the child ended")


def test_process_that_got_the_pid_of_an_ended_one_keeps_its_children(
    parent: subprocess.Popen[bytes],
) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    ended.pid = parent.pid

    processes.kill_family(ended, "mark of nobody")

    assert parent.poll() is None
    assert psutil.Process(parent.pid).children()
