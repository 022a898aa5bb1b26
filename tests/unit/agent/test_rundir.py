"""The run dir: one default for all parts, one agent at a time, nobody else's files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hangwatch_agent import probe, rundir, settings
from hangwatch_agent.errors import RunDirError


@pytest.mark.parametrize("uid", [0, 1000])
@pytest.mark.parametrize("runtime", [None, "/run/user/1000"])
def test_probe_and_agent_look_into_the_same_folder(
    monkeypatch: pytest.MonkeyPatch, uid: int, runtime: str | None
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    monkeypatch.delenv("HANGWATCH_RUN_DIR", raising=False)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    if runtime is not None:
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)

    assert settings.default_run_dir() == Path(probe.run_dir())
    assert settings.AgentSettings().run_dir == Path(probe.run_dir())


def test_second_agent_is_told_who_holds_the_folder(tmp_path: Path) -> None:
    first = rundir.Lock(tmp_path)

    with pytest.raises(RunDirError, match=f"another agent already .pid {os.getpid()}"):
        rundir.Lock(tmp_path)

    first.release()


def test_lock_that_is_linked_to_another_file_is_not_written_to(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / rundir.LOCK_NAME).hardlink_to(victim)

    with pytest.raises(RunDirError, match="not a plain file"):
        rundir.Lock(tmp_path)

    assert victim.read_text() == "precious"


def test_fifo_in_place_of_the_lock_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / rundir.LOCK_NAME)

    with pytest.raises(RunDirError, match="not a plain file"):
        rundir.Lock(tmp_path)


def test_folder_of_another_user_is_refused_by_an_ordinary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 7)
    os.chown(tmp_path, tmp_path.stat().st_uid + (3 if os.getuid() == 0 else 0), -1)

    with pytest.raises(RunDirError, match="who could replace what is in it"):
        rundir.prepare(tmp_path)


def test_root_agent_takes_the_folder_of_one_user(tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a folder away")
    os.chown(tmp_path, 1001, 1001)

    rundir.prepare(tmp_path)


def test_shared_folder_without_sticky_bit_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)

    with pytest.raises(RunDirError, match=r"chmod \+t"):
        rundir.prepare(tmp_path)
