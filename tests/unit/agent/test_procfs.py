"""Parsing of /proc on recorded contents."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from hangwatch_agent import procfs

STAT = (
    "13839 (python3 (x) y) S 13830 13830 13830 0 -1 4194304 60135 0 25 0 120 13 0 0 20 0 14 0 "
    "285753 5167931392 62031 18446744073709551615 1 1 0 0 0 0 0 16781312 134236674 0 0 0 17 0 0 0 "
    "0 0 0 0 0 0 0 0 0 0 9"
)
STATUS = "Name:\tpython\nUid:\t1000\t1000\t0\t1000\nNSpid:\t13839\t27\nCapEff:\t0000000000080000\n"


def test_stat_with_parentheses_and_spaces_in_the_name() -> None:
    stat = procfs.parse_stat(STAT)

    assert stat is not None
    assert (stat.pid, stat.name, stat.state, stat.parent) == (13839, "python3 (x) y", "S", 13830)
    assert (stat.cpu_ticks, stat.threads, stat.start_ticks) == (133, 14, 285753)
    assert stat.exit_status == 9


def test_half_a_stat_is_no_stat() -> None:
    assert procfs.parse_stat("12 (python) S 1 2") is None
    assert procfs.parse_stat("") is None


def test_status_gives_all_uids_pids_and_capabilities() -> None:
    assert procfs.parse_uids(STATUS) == {0, 1000}
    assert procfs.parse_namespace_pids(STATUS) == (13839, 27)
    assert procfs.parse_capabilities(STATUS) >> 19 & 1


def test_io_adds_reads_and_writes_of_system_calls() -> None:
    assert procfs.parse_io("rchar: 10\nwchar: 5\nread_bytes: 4096\n") == 15
    assert procfs.parse_io("") is None


def test_environment_is_split_at_zero_bytes() -> None:
    assert procfs.parse_environ(b"RANK=1\0A=b=c\0\0broken") == {"RANK": "1", "A": "b=c"}


def test_cgroup_paths_of_both_versions() -> None:
    assert procfs.parse_cgroup("0::/user.slice\n") == {"": "/user.slice"}
    assert procfs.parse_cgroup("4:cpu,memory:/job\n")["memory"] == "/job"


def test_oom_kills_are_found_in_both_files() -> None:
    assert procfs.parse_oom_kills("low 0\noom 3\noom_kill 2\n") == 2
    assert procfs.parse_oom_kills("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n") == 1
    assert procfs.parse_oom_kills("") is None


def test_schedule_gives_times_and_nothing_where_there_are_none() -> None:
    assert procfs.parse_schedule("43647879 5734675 14\n") == procfs.Schedule(43647879, 5734675)
    assert procfs.parse_schedule("") is None
    assert procfs.parse_schedule("1 2") is None


def test_process_whose_memory_cannot_be_read_holds_nobody_up(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    os.mkfifo(tmp_path / "7" / "environ")  # opening it waits for a writer, as a held map does
    proc = procfs.Procfs(tmp_path)

    first = proc.environ(7)
    begun = set(threading.enumerate())
    again = [proc.environ(7) for _ in range(20)]

    assert (first, again) == ({}, [{}] * 20)
    assert set(threading.enumerate()) <= begun  # no further thread waits for the same file
    with open(tmp_path / "7" / "environ", "wb") as writer:
        writer.write(b"RANK=3\0")
