"""`hangwatch diagnose`: what it prints, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support import left_behind

from hangwatch_agent import cli
from hangwatch_server.offline import File

pytestmark = pytest.mark.integration


def write(folder: Path, files: list[File]) -> list[str]:
    for file in files:
        (folder / file.name).write_bytes(file.data)
    return [str(folder / file.name) for file in files]


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        cli.main(["diagnose", *arguments])
    return int(str(ended.value.code))


def test_a_hang_is_told_and_exits_with_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, left_behind.dumps())

    assert run(str(tmp_path)) == 1

    told = capsys.readouterr().out
    assert told.startswith("trace: hang\n  Rank 2 never entered all_reduce #6")
    assert "4 of 4 files were used." in told


def test_json_holds_the_whole_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = write(tmp_path, [*left_behind.dumps(), File(name="notes.txt", data=b"hello")])

    assert run("--json", *paths) == 1

    document = json.loads(capsys.readouterr().out)
    assert document["jobs"][0]["verdict"]["culprit_ranks"] == "2"
    assert [row["is_used"] for row in document["files"]] == [True] * 4 + [False]


def test_files_that_cannot_tell_exit_with_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = write(tmp_path, [File(name="rank_0.json", data=left_behind.dump(0).data[:50])])

    assert run(*paths) == 2

    assert "ends early" in capsys.readouterr().out


def test_a_name_that_is_no_file_is_an_error_with_a_next_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(str(tmp_path / "nothing")) == 2
    assert "give files, or folders" in capsys.readouterr().err
