"""Starts small real jobs under the probe, reads their records, and ends exactly what it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from hangwatch_agent import records, run

PROGRAMS = Path(__file__).parent / "programs"
GATE = "gate"  # a pipe, see signals.hold_interpreter
DEADLINE_S = 150.0  # a rank takes seconds to start, and minutes on a machine with other work
T = TypeVar("T")


def wait_for(question: Callable[[], T | None], what: str, deadline_s: float = DEADLINE_S) -> T:
    """Ask until the answer is neither None nor False; fail with `what` after the deadline."""
    end = time.monotonic() + deadline_s
    while time.monotonic() < end:
        answer = question()
        if answer is not None and answer is not False:
            return answer
        time.sleep(0.05)
    raise AssertionError(f"did not happen within {deadline_s} s: {what}")


class Job:
    """One started command with its own run dir and a folder for signals to the program."""

    def __init__(
        self,
        folder: Path,
        command: Sequence[str],
        *,
        has_injection: bool = True,
        has_call_sites: bool = False,
        run_dir_mode: int | None = None,
    ) -> None:
        self.run_dir = folder / "run"
        if run_dir_mode is not None:
            self.run_dir.mkdir()
            self.run_dir.chmod(run_dir_mode)
        self.signals = folder / "signals"
        self.signals.mkdir()
        os.mkfifo(self.signals / GATE)
        self._gate: int | None = None
        base = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        base |= {"SIGNALS": str(self.signals), "OMP_NUM_THREADS": "1"}
        if has_injection:
            environment = run.environment(
                "probed", self.run_dir, command, base, has_call_sites=has_call_sites
            )
        else:
            environment = base | {"HANGWATCH_RUN_DIR": str(self.run_dir)}
        self.log = folder / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command, env=environment, stdout=log, stderr=log, start_new_session=True
            )

    def signal(self, name: str) -> None:
        (self.signals / name).touch()

    def open_gate(self) -> None:
        """Let a rank that waits at the gate with the GIL in its hands go on."""
        self._gate = os.open(self.signals / GATE, os.O_RDWR)  # for writing alone it might block

    def has(self, name: str) -> bool:
        return (self.signals / name).exists()

    def records(self) -> dict[int, records.Record]:
        """The readable records by rank."""
        found = [records.read(path) for path in records.scan(self.run_dir)]
        return {one.payload.rank: one for one in found if one.payload is not None}

    def wait(self) -> int:
        try:
            return self.process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"job did not end:\n{self.log.read_text()}") from error

    def end(self) -> None:
        if self._gate is not None:
            os.close(self._gate)
            self._gate = None
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(DEADLINE_S)


class Starter:
    """Starts jobs and ends them all."""

    def __init__(self) -> None:
        self._jobs: list[tuple[Job, tempfile.TemporaryDirectory[str]]] = []

    def __call__(
        self,
        program: str,
        *arguments: str,
        nproc: int = 0,
        has_injection: bool = True,
        has_call_sites: bool = False,
        run_dir_mode: int | None = None,
    ) -> Job:
        # Not pytest's folder: a socket's path may have 107 bytes only.
        folder = tempfile.TemporaryDirectory(prefix="hwp-")
        python = [sys.executable]
        if nproc:
            torchrun = str(Path(sys.executable).parent / "torchrun")
            python = [torchrun, "--standalone", "--nproc-per-node", str(nproc)]
        command = [*python, str(PROGRAMS / program), *arguments]
        job = Job(
            Path(folder.name),
            command,
            has_injection=has_injection,
            has_call_sites=has_call_sites,
            run_dir_mode=run_dir_mode,
        )
        self._jobs.append((job, folder))
        return job

    def end(self) -> None:
        for job, folder in self._jobs:
            job.end()
            folder.cleanup()


@pytest.fixture(scope="module")
def start() -> Iterator[Starter]:
    starter = Starter()
    yield starter
    starter.end()
