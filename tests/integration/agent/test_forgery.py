"""A record is job-user input: it cannot point a root agent at somebody else's process."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
from tests.integration.agent import conftest as make

from hangwatch_agent import permissions, process, records, wire
from hangwatch_agent.captures import Captures
from hangwatch_agent.stacks import Stacks


def foreign(run_dir: Path, own: subprocess.Popen[bytes]) -> Path:
    """A record whose owner is not the uid of the process that it names."""
    if os.geteuid() == 0:
        path = make.write_record(run_dir, own.pid)
        os.chown(path, make.NOBODY, make.NOBODY)
        return path
    return make.write_record(run_dir, 1)


def test_record_of_another_user_is_not_believed(
    run_dir: Path, rank_process: subprocess.Popen[bytes]
) -> None:
    foreign(run_dir, rank_process)
    node = make.node_of(run_dir)

    make.look(node)

    assert node.tracked == []
    assert node.find("run:job", 0) is None


@pytest.mark.anyio
async def test_process_named_by_a_forged_record_is_never_read(
    run_dir: Path, rank_process: subprocess.Popen[bytes]
) -> None:
    foreign(run_dir, rank_process)
    node = make.node_of(run_dir)
    make.look(node)
    stacks = Stacks(
        process.default_proc(), concurrency=1, timeout_s=5, py_spy=permissions.find_py_spy()
    )
    parts: list[wire.CapturePart] = []
    command = wire.TakeCapture(capture="c", targets=(wire.Target(launch="run:job", rank=0),))

    async def deliver(part: wire.CapturePart) -> None:
        parts.append(part)

    await Captures(node, stacks).take(command, deliver)

    assert [(part.pid, part.stacks) for part in parts] == [(0, ())]
    assert "no such rank" in parts[0].reason


def test_own_record_with_the_same_contents_is_believed(
    run_dir: Path, rank_process: subprocess.Popen[bytes]
) -> None:
    make.write_record(run_dir, rank_process.pid)
    node = make.node_of(run_dir)

    make.look(node)

    assert [item.identity.pid for item in node.tracked] == [rank_process.pid]


def test_record_with_a_wrong_start_time_is_not_believed(
    run_dir: Path, rank_process: subprocess.Popen[bytes]
) -> None:
    make.write_record(run_dir, rank_process.pid, ticks=1)
    node = make.node_of(run_dir)

    make.look(node)

    assert node.tracked == []


def test_linked_record_is_not_followed(
    run_dir: Path, tmp_path: Path, rank_process: subprocess.Popen[bytes]
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    real = make.write_record(elsewhere, rank_process.pid)
    (run_dir / real.name).symlink_to(real)
    node = make.node_of(run_dir)

    make.look(node)

    assert node.tracked == []
    assert records.read(run_dir / real.name).problem


def test_record_whose_owner_changes_later_is_dropped(
    run_dir: Path, rank_process: subprocess.Popen[bytes]
) -> None:
    path = make.write_record(run_dir, rank_process.pid)
    node = make.node_of(run_dir)
    make.look(node)
    assert node.tracked

    path.unlink()
    path.symlink_to("/etc/passwd")
    make.wait_for(lambda: not _follow(node), "the rank is dropped")


def _follow(node: object) -> list[object]:
    make.look(node)  # type: ignore[arg-type]
    return [item for item in node.tracked if item.candidate.record]  # type: ignore[attr-defined]


def test_pidfd_is_refused_for_another_start_time_or_owner(
    rank_process: subprocess.Popen[bytes],
) -> None:
    proc = process.default_proc()
    stat = proc.stat(rank_process.pid)
    assert stat is not None

    late = process.Identity(stat.pid, stat.start_ticks + 1, os.geteuid())
    other = process.Identity(stat.pid, stat.start_ticks, os.geteuid() + 1)

    assert process.open_pidfd(late, proc) is None
    assert process.open_pidfd(other, proc) is None


def test_error_file_of_another_user_or_behind_a_link_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "error.json"
    file.write_text('{"message": "boom"}')
    link = tmp_path / "link.json"
    link.symlink_to(file)

    assert process.read_error_file(str(file), os.geteuid()) == "uncaught boom"
    assert process.read_error_file(str(file), os.geteuid() + 1) == ""
    assert process.read_error_file(str(link), os.geteuid()) == ""
    assert process.read_error_file("/dev/zero", 0) == ""


def test_hostile_environment_in_a_record_ends_nothing(
    run_dir: Path, rank_process: subprocess.Popen[bytes]
) -> None:
    environment = {"MASTER_ADDR": "a" * 300, "TORCHELASTIC_ERROR_FILE": "/a\0b"}
    make.write_record(run_dir, rank_process.pid, environment=environment)
    node = make.node_of(run_dir)
    make.look(node)

    rank_process.kill()
    rank_process.wait()
    node.poll(time.monotonic() + 2, time.monotonic_ns())

    assert [item.facts.state for item in node.tracked] == ["gone"]


def test_folder_in_place_of_an_old_record_is_left_alone(
    run_dir: Path, rank_process: subprocess.Popen[bytes]
) -> None:
    path = make.write_record(run_dir, rank_process.pid)
    node = make.node_of(run_dir)
    make.look(node)
    rank_process.kill()
    rank_process.wait()
    node.poll(time.monotonic() + 2, time.monotonic_ns())
    path.unlink()
    path.mkdir()

    node.scan(time.monotonic() + 2000)

    assert path.is_dir()
    assert node.tracked == []
