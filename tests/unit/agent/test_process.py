"""CPU shares, and why a process is gone: only from evidence."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from hangwatch_agent import process, procfs
from hangwatch_agent.payload import ExitPayload
from hangwatch_agent.process import ExitFacts, error_message, exit_of, read_error_file
from hangwatch_agent.shares import Share, Stillness

EXITED_3 = 3 << 8


def test_share_is_measured_over_the_last_seconds_only() -> None:
    share = Share()
    ticks = procfs.TICKS_PER_S

    assert share.add(0.0, 0) is None
    busy = [share.add(float(second), second * ticks) for second in range(1, 6)]
    idle = [share.add(float(second), 5 * ticks) for second in range(6, 10)]

    assert busy[-1] == pytest.approx(1.0)
    assert idle[-1] == pytest.approx(0.0)


def test_process_says_while_a_capture_stops_it() -> None:
    proc = procfs.Procfs()
    stat = proc.stat(os.getpid())
    assert stat is not None
    followed = process.Process(proc, process.Identity(stat.pid, stat.start_ticks, os.getuid()))

    followed.readers += 1
    during = followed.observe(1.0, None)
    followed.readers -= 1
    after = followed.observe(2.0, None)

    assert (during.is_being_read, after.is_being_read) == (True, False)


def test_thread_is_still_since_it_last_ran() -> None:
    stillness = Stillness()

    ran = ((1.0, 7), (3.0, 7), (4.0, 8))
    still = [stillness.add(now_s, ran_ns, is_ready=False) for now_s, ran_ns in ran]

    assert still == [0.0, 2.0, 0.0]
    assert stillness.add(9.0, 8, is_ready=False) == 5.0


def test_thread_that_waits_for_a_core_is_not_still() -> None:
    stillness = Stillness()

    assert [stillness.add(now_s, 7, is_ready=True) for now_s in (1.0, 9.0)] == [0.0, 0.0]


def end(
    mark: ExitPayload | None = None, status: int | None = None, text: str = "", oom: bool = False
) -> ExitFacts:
    return exit_of(mark, status, error_text=text, is_oom_killed=oom)


def test_without_evidence_the_cause_is_unknown() -> None:
    assert end() == ExitFacts(None, None, "")


def test_uncaught_exception_in_the_exit_mark_is_the_reason() -> None:
    found = end(ExitPayload(code=1, exception="RuntimeError"))

    assert found == ExitFacts(1, None, "uncaught RuntimeError")


def test_zombie_status_tells_signal_and_code() -> None:
    assert end(status=signal.SIGKILL) == ExitFacts(None, 9, "killed by SIGKILL")
    assert end(status=EXITED_3) == ExitFacts(3, None, "exited with code 3")
    assert end(status=0) == ExitFacts(0, None, "exited")


def test_oom_count_explains_a_kill_but_not_an_exit() -> None:
    assert end(status=signal.SIGKILL, oom=True).reason.startswith("oom_kill")
    assert end(oom=True).signal == 9
    assert end(status=EXITED_3, oom=True).reason == "exited with code 3"
    assert end(ExitPayload(code=0), oom=True).reason == "exited"


def test_elastic_error_file_names_the_exception() -> None:
    data = b'{"message": {"message": "ValueError: bad batch\\nmore", "extraInfo": {}}}'

    assert error_message(data) == "uncaught ValueError: bad batch"
    assert error_message(b'{"message": "boom"}') == "uncaught boom"
    assert error_message(b"not json") == ""
    assert error_message(b"[]") == ""


def test_hostile_error_files_say_nothing_and_raise_nothing(tmp_path: Path) -> None:
    deep = tmp_path / "deep"
    deep.write_text('{"message":' + "[" * 60_000)
    link = tmp_path / "link"
    link.symlink_to(deep)
    os.mkfifo(tmp_path / "fifo")

    paths = ("/a\0b", str(deep), str(link), str(tmp_path / "fifo"), "/dev/null", str(tmp_path))

    assert [read_error_file(path, os.getuid()) for path in paths] == [""] * len(paths)


def test_error_file_of_the_jobs_user_is_read(tmp_path: Path) -> None:
    path = tmp_path / "error.json"
    path.write_text('{"message": "boom"}')

    assert read_error_file(str(path), os.getuid()) == "uncaught boom"
    assert read_error_file(str(path), os.getuid() + 1) == ""


def test_half_a_character_in_an_error_file_can_be_sent() -> None:
    text = error_message(b'{"message": "boom \\ud800"}')

    assert text.encode() == b"uncaught boom ?"


def test_error_file_on_storage_that_never_answers_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()
    monkeypatch.setattr(process, "read_error_file", lambda path, uid: str(release.wait()))
    monkeypatch.setattr(procfs, "MEMORY_TIMEOUT_S", 0.01)
    gone = process.Process(procfs.Procfs(tmp_path), process.Identity(7, 1, 0), "/dead/error.json")

    try:
        assert gone.observe(1.0, None).exit_reason == ""
        assert gone.observe(2.0, None).exit_reason == ""
    finally:
        release.set()
