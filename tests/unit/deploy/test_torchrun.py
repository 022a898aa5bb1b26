"""Which processes the wrapper of torchrun may kill; tests/schedulers shows a whole restart."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from tests.support.waiting import until

FOLDER = Path(__file__).resolve().parents[3] / "deploy" / "torchrun"
# A launcher, as torchrun is: rank 3 with a child that inherits its RANK, as a loader worker does.
LAUNCHER = "RANK=3 sh -c 'sleep 600 & sleep 600 & wait' & RANK=4 sleep 600 & sleep 600 & wait"


@pytest.fixture
def restart(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("hangwatch_restart")


@pytest.fixture
def launcher() -> Iterator[int]:
    with subprocess.Popen(["sh", "-c", LAUNCHER], start_new_session=True) as process:
        yield process.pid
        os.killpg(process.pid, signal.SIGKILL)


def test_workers_are_those_that_the_launcher_gave_a_rank(
    restart: ModuleType, launcher: int
) -> None:
    found = until(
        lambda: _both(list(restart.workers(launcher))),
        30,
        "both workers run",
    )

    assert sorted(rank for rank, _ in found) == [3, 4]
    for rank, pid in found:
        parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        assert parent == launcher
        assert restart.rank_of(pid) == rank


def test_process_that_is_gone_has_no_rank(restart: ModuleType) -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()

        assert restart.rank_of(process.pid) is None


def _both(found: list[tuple[int, int]]) -> list[tuple[int, int]] | None:
    return found if len(found) == 2 else None
