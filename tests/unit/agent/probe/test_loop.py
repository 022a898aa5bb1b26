"""The probe's beat without torch: what it does about its files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from hangwatch_agent import records
from hangwatch_agent.probe.loop import Loop


def waiting(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Loop:
    """A process that waits in init_process_group, which shows it to be a rank."""
    loop = Loop(str(run_dir), "1")
    waits: list[dict[str, Any]] = [{"what": "init_process_group", "since_ns": 1}]
    monkeypatch.setattr(loop._inits, "read", lambda: waits)
    return loop


def found(run_dir: Path) -> records.Record:
    (path,) = records.scan(run_dir)
    return records.read(path)


def test_beats_go_on_in_a_new_record_once_the_folder_was_cleared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_dir = tmp_path / "run"
    loop = waiting(run_dir, monkeypatch)
    loop._guarded_tick()
    first = found(run_dir).payload
    shutil.rmtree(run_dir)

    loop._guarded_tick()
    again = found(run_dir).payload
    loop._mark_exit(3, "")

    assert first is not None
    assert again is not None
    assert again.beat == first.beat + 1
    assert "beat" not in loop._lacks
    mark = found(run_dir).exit
    assert mark is not None
    assert mark.code == 3


def test_unsafe_folder_ends_the_probe_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tmp_path.chmod(0o777)
    loop = waiting(tmp_path, monkeypatch)

    loop._guarded_tick()

    assert loop._has_failed
    assert os.listdir(tmp_path) == []
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert f"{tmp_path} cannot hold its record: it lets every user" in line
