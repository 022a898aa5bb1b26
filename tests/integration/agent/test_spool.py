"""The spool on a real disk: restarts, bounds, garbage."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hangwatch_agent import wire
from hangwatch_agent.errors import RunDirError
from hangwatch_agent.spool import Clock, Spool, key_of

SECOND = 1_000_000_000
NOW = Clock("boot-a", 100 * SECOND, 5000.0)


def part(capture: str = "c1", rank: int = 0, text: str = "") -> wire.CapturePart:
    return wire.CapturePart(capture=capture, launch="k", rank=rank, pid=1, age_s=0.5, reason=text)


def test_parts_survive_a_restart_with_their_age(tmp_path: Path) -> None:
    key = Spool(tmp_path / "spool", 1 << 20).put(part(), NOW)

    again = Spool(tmp_path / "spool", 1 << 20)
    found = again.get(key, Clock("boot-a", 130 * SECOND, 9.0))
    rebooted = again.get(key, Clock("boot-b", 1, 5060.0))

    assert again.keys() == [key]
    assert found is not None
    assert found.age_s == pytest.approx(30.5)
    assert rebooted is not None
    assert rebooted.age_s == pytest.approx(60.5)


def test_acknowledged_part_is_forgotten(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", 1 << 20)
    spool.put(part(), NOW)

    spool.remove(key_of("c1", "k", 0))

    assert spool.keys() == []


def test_oldest_parts_go_beyond_the_limit_and_are_counted(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", 25_000)
    keys = [spool.put(part(rank=rank, text="x" * 10_000), NOW) for rank in range(4)]

    assert spool.dropped == 2
    kept = spool.keys()
    assert set(kept) <= set(keys)
    assert keys[-1] in kept


def test_garbage_is_removed_and_counted(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", 1 << 20)
    (tmp_path / "spool" / "bad.part").write_bytes(b"\xc1 no msgpack")

    assert spool.get("bad", NOW) is None
    assert spool.dropped == 1
    assert spool.keys() == []


def test_parts_stay_in_memory_when_the_disk_cannot_be_written(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", 1 << 20)
    (tmp_path / "spool").rmdir()

    key = spool.put(part(), NOW)

    assert spool.keys() == [key]
    assert spool.get(key, NOW) == part()


def test_folder_that_others_can_write_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "spool"
    folder.mkdir()
    folder.chmod(0o777)

    with pytest.raises(RunDirError, match="HANGWATCH_SPOOL_DIR"):
        Spool(folder, 1 << 20)
    assert os.listdir(folder) == []
