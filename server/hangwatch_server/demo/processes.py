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

# Environment variables that say whose a process is: of one job, and of the stage as a whole.
MARK = "STAGE_JOB"
STAGE_MARK = "STAGE"
STOP_TIMEOUT_S = 15.0


def start(
    command: Sequence[str], environment: Mapping[str, str], log: Path
) -> subprocess.Popen[bytes]:
    """Start `command` in a session of its own, both outputs appended to `log`.

    Settings of the person's own shell stay outside: one of them could name their real database.
    """
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith("HANGWATCH_")
    }
    with log.open("ab") as output:
        return subprocess.Popen(
            list(command),
            env={**inherited, **environment},
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
    family = {*below, *_marked(MARK, mark)}
    for member in family:
        for number in (signal.SIGCONT, signal.SIGKILL):
            with contextlib.suppress(psutil.Error):
                member.send_signal(number)
    if process.poll() is None:
        process.kill()
    process.wait(STOP_TIMEOUT_S)
    psutil.wait_procs(family, timeout=STOP_TIMEOUT_S)


def end_marked(name: str, mark: str) -> None:
    """End what is left with this mark: a start that an interrupt cut short left no handle."""
    left = _marked(name, mark)
    for end in (psutil.Process.terminate, psutil.Process.kill):
        for member in left:
            with contextlib.suppress(psutil.Error):
                end(member)
        _, left = psutil.wait_procs(left, timeout=STOP_TIMEOUT_S)


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _marked(name: str, mark: str) -> list[psutil.Process]:
    found = []
    for candidate in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if candidate.environ().get(name) == mark:
                found.append(candidate)
    return found
