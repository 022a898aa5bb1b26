"""Starts and ends processes of the stage, and with them everything they started.

torchrun puts each rank into a session of its own and leaves it behind when it is killed, so the
processes of a job are known by a mark in their environment, never by their name.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

MARK = "STAGE_JOB"  # environment variable
STOP_TIMEOUT_S = 15.0


def start(
    command: Sequence[str], environment: Mapping[str, str], log: Path
) -> subprocess.Popen[bytes]:
    """Start `command` in a session of its own, both outputs appended to `log`."""
    with log.open("ab") as output:
        return subprocess.Popen(
            list(command),
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def stop(process: subprocess.Popen[bytes]) -> None:
    """Ask one process to end; kill it if it does not."""
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(STOP_TIMEOUT_S)


def kill_family(process: subprocess.Popen[bytes], mark: str) -> None:
    """Kill `process`, its descendants, and all whose environment carries `mark`.

    SIGCONT goes first: a stopped process would otherwise keep its parent waiting.
    """
    # The pid of a process that was waited for may belong to a stranger by now.
    below = _descendants(process.pid) if process.poll() is None else []
    family = {*below, *_marked(mark)}
    for member in family:
        for number in (signal.SIGCONT, signal.SIGKILL):
            with contextlib.suppress(psutil.Error):
                member.send_signal(number)
    if process.poll() is None:
        process.kill()
    process.wait(STOP_TIMEOUT_S)
    psutil.wait_procs(family, timeout=STOP_TIMEOUT_S)


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _marked(mark: str) -> list[psutil.Process]:
    found = []
    for candidate in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if candidate.environ().get(MARK) == mark:
                found.append(candidate)
    return found
