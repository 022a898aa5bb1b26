"""Files of /proc that stay open, and what they give when their process has gone."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from hangwatch_agent import held, procfs


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_file_is_opened_once_and_read_anew_each_time(tmp_path: Path) -> None:
    (tmp_path / "io").write_text("rchar: 1")
    files = held.Files(tmp_path)
    before = files.read("io")
    opened = descriptors()

    (tmp_path / "io").write_text("rchar: 2")

    assert (before, files.read("io")) == ("rchar: 1", "rchar: 2")
    assert descriptors() == opened


def test_open_files_of_an_ended_process_give_nothing() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as child:
        files = held.Files(Path("/proc") / str(child.pid))
        stat = procfs.parse_stat(files.read("stat"))

    assert stat is not None
    assert stat.pid == child.pid
    assert files.read("stat") == ""
    assert files.read("wchan") == ""


def test_closing_gives_every_descriptor_back_and_reading_opens_again(tmp_path: Path) -> None:
    (tmp_path / "io").write_text("x")
    before = descriptors()
    files = held.Files(tmp_path)
    files.read("io")

    files.close()

    assert descriptors() == before
    assert files.read("io") == "x"
    files.close()


def test_files_over_the_limit_are_read_and_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held, "MOST_FILES", 0)
    (tmp_path / "io").write_text("x")
    before = descriptors()

    assert held.Files(tmp_path).read("io") == "x"
    assert descriptors() == before


def test_missing_file_gives_nothing(tmp_path: Path) -> None:
    assert held.Files(tmp_path).read("io") == ""
