"""The writer's own promises; reading is tested with the reader."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hangwatch_agent.probe import record


def test_record_is_private_and_whole_from_the_start(tmp_path: Path) -> None:
    writer = record.Writer(str(tmp_path), 4, 5)

    facts = os.stat(writer.path)

    assert Path(writer.path).name == "4.5.record"
    assert facts.st_mode & 0o777 == 0o600
    assert facts.st_size == record.TOTAL_SIZE
    assert os.listdir(tmp_path) == ["4.5.record"]


def test_space_is_taken_at_once_so_that_a_full_disk_cannot_kill_the_trainer(tmp_path: Path) -> None:
    writer = record.Writer(str(tmp_path), 4, 5)

    assert os.stat(writer.path).st_blocks * 512 >= record.TOTAL_SIZE


def test_second_writer_of_the_same_process_replaces_the_first(tmp_path: Path) -> None:
    record.Writer(str(tmp_path), 4, 5)

    again = record.Writer(str(tmp_path), 4, 5)

    assert os.listdir(tmp_path) == [Path(again.path).name]


def test_payload_over_the_limit_is_refused(tmp_path: Path) -> None:
    writer = record.Writer(str(tmp_path), 4, 5)

    with pytest.raises(ValueError, match="do not fit"):
        writer.write(b"x" * (record.MAX_PAYLOAD + 1))


def test_start_ticks_come_from_proc() -> None:
    assert record.start_ticks(os.getpid()) > 0
