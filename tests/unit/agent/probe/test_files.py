"""Record and socket of a rank: where they are made, and that they come back."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hangwatch_agent import records
from hangwatch_agent.probe import files

SECOND = 1_000_000_000
BEAT = b'{"beat":1,"at_ns":1}'


def made(run_dir: Path) -> files.Files:
    return files.Files(str(run_dir), {})


def test_record_that_was_removed_is_made_anew_with_the_next_beat(tmp_path: Path) -> None:
    held = made(tmp_path / "run")
    path = Path(held.writer.path)
    held.writer.write(BEAT)
    path.unlink()
    path.parent.rmdir()

    is_renewed = held.renew(SECOND)
    held.writer.write(BEAT)

    assert is_renewed
    assert records.read(path).payload is not None
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_record_that_stands_is_left_alone(tmp_path: Path) -> None:
    held = made(tmp_path)
    writer = held.writer

    assert not held.renew(SECOND)
    assert held.writer is writer


def test_other_file_in_its_place_is_replaced(tmp_path: Path) -> None:
    held = made(tmp_path)
    other = tmp_path / "other"
    other.touch()
    other.rename(held.writer.path)

    assert held.renew(SECOND)
    assert records.read(Path(held.writer.path)).pid == os.getpid()


def test_folder_that_cannot_be_made_is_tried_again_later_and_not_with_each_beat(
    tmp_path: Path,
) -> None:
    run_dir = tmp_path / "run"
    held = made(run_dir)
    Path(held.writer.path).unlink()
    run_dir.rmdir()
    run_dir.touch()

    at_first = held.renew(SECOND)
    run_dir.unlink()
    soon, later = held.renew(2 * SECOND), held.renew(SECOND + files.RENEW_EVERY_NS)

    assert (at_first, soon, later) == (False, False, True)


def test_files_that_somebody_removes_all_the_time_are_given_up(tmp_path: Path) -> None:
    held = made(tmp_path)
    renewed = 0

    for turn in range(2 * files.MAX_RENEWED):
        Path(held.writer.path).unlink(missing_ok=True)
        renewed += held.renew((turn + 1) * files.RENEW_EVERY_NS)

    assert renewed == files.MAX_RENEWED


def test_unsafe_folder_gets_no_record(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)

    with pytest.raises(ValueError, match="lets every user remove"):
        made(tmp_path)

    assert os.listdir(tmp_path) == []


def test_job_is_told_in_one_line_why_it_is_not_watched(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    files.say_why_not("/run/x", ValueError("it belongs to uid 7"))
    line = capsys.readouterr().err
    monkeypatch.setattr("sys.stderr", None)
    files.say_why_not("/run/x", OSError(28, "No space left on device"))

    assert line.count("\n") == 1
    assert "it belongs to uid 7; set HANGWATCH_RUN_DIR" in line
