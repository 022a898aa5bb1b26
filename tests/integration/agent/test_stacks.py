"""Stacks of real processes with the real py-spy."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from tests.integration.agent import conftest as make

from hangwatch_agent import permissions, process, wire
from hangwatch_agent.process import Identity
from hangwatch_agent.stacks import Stacks, Subject


def stacks(py_spy: str | None = None) -> Stacks:
    return Stacks(
        process.default_proc(),
        concurrency=2,
        timeout_s=90,
        py_spy=py_spy or permissions.find_py_spy(),
    )


def subject(pid: int) -> Subject:
    proc = process.default_proc()
    stat = proc.stat(pid)
    assert stat is not None
    (uid,) = proc.uids(pid)
    return Subject(Identity(pid, stat.start_ticks, uid), "main", is_python=True, name=stat.name)


def take(pid: int, native: bool = False) -> wire.ProcessStacks:
    return asyncio.run(stacks().take(subject(pid), native=native, timeout_s=90))


def test_running_process_gives_its_frames(rank_process: subprocess.Popen[bytes]) -> None:
    found = take(rank_process.pid)

    assert (found.reason, found.threads[0].thread_id) == ("", rank_process.pid)
    assert found.threads[0].frames[-1].name == "<module>"


def test_stopped_process_is_read_and_stays_stopped(
    rank_process: subprocess.Popen[bytes],
) -> None:
    os.kill(rank_process.pid, signal.SIGSTOP)
    proc = process.default_proc()
    make.wait_for(lambda: _state(proc, rank_process.pid) == "T", "the process stops")

    found = take(rank_process.pid)

    assert found.threads
    assert _state(proc, rank_process.pid) == "T"


def test_process_that_is_stopped_during_a_capture_stays_stopped(
    rank_process: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    slow_py_spy = tmp_path / "py-spy"
    slow_py_spy.write_text(f"#!/bin/sh\nkill -STOP {rank_process.pid}\nsleep 0.2\necho '[]'\n")
    slow_py_spy.chmod(0o700)

    taker = stacks(str(slow_py_spy))
    asyncio.run(taker.take(subject(rank_process.pid), native=False, timeout_s=90))

    proc = process.default_proc()
    make.wait_for(lambda: _state(proc, rank_process.pid) == "T", "the process stays stopped")


def test_agent_that_is_told_to_stop_leaves_no_process_stopped(
    rank_process: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    stuck_py_spy = tmp_path / "py-spy"
    stuck_py_spy.write_text(
        f"#!/bin/sh\ntrap '' INT\nkill -STOP {rank_process.pid}\nexec sleep 600\n"
    )
    stuck_py_spy.chmod(0o700)
    proc = process.default_proc()

    async def stop_meanwhile() -> None:
        taking = asyncio.create_task(
            stacks(str(stuck_py_spy)).take(subject(rank_process.pid), native=True, timeout_s=90)
        )
        await asyncio.to_thread(
            make.wait_for, lambda: _state(proc, rank_process.pid) == "T", "the process is stopped"
        )
        taking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await taking

    asyncio.run(asyncio.wait_for(stop_meanwhile(), 120))

    make.wait_for(lambda: _state(proc, rank_process.pid) != "T", "the process runs on")


def test_native_capture_leaves_the_process_running(
    rank_process: subprocess.Popen[bytes],
) -> None:
    found = take(rank_process.pid, native=True)

    assert any(frame.is_native for thread in found.threads for frame in thread.frames)
    assert _state(process.default_proc(), rank_process.pid) in ("S", "R")


def test_process_that_ended_gives_a_reason(rank_process: subprocess.Popen[bytes]) -> None:
    found = subject(rank_process.pid)
    rank_process.kill()
    rank_process.wait()

    taken = asyncio.run(stacks().take(found, native=False, timeout_s=5))

    assert taken.threads == ()
    assert "gone" in taken.reason


def test_capture_without_permission_gives_reason_and_remedy(
    rank_process: subprocess.Popen[bytes],
) -> None:
    foreign = subject(rank_process.pid if os.geteuid() == 0 else 1)

    taken = _as_nobody(foreign)

    assert taken["threads"] == 0
    assert "CAP_SYS_PTRACE" in str(taken["reason"])
    assert "--cap-add SYS_PTRACE" in str(taken["remedy"])


def test_missing_py_spy_gives_reason_and_remedy(rank_process: subprocess.Popen[bytes]) -> None:
    none = Stacks(process.default_proc(), concurrency=1, timeout_s=5, py_spy=None)

    taken = asyncio.run(none.take(subject(rank_process.pid), native=False, timeout_s=5))

    assert "not installed" in taken.reason
    assert "pip install" in taken.remedy


def test_process_that_is_no_python_is_said_so() -> None:
    compiler = Subject(Identity(os.getpid(), 1, 0), "compile", is_python=False, name="ptxas")

    taken = asyncio.run(stacks().take(compiler, native=False, timeout_s=5))

    assert taken.reason == "ptxas is not a Python process"


@pytest.mark.anyio
async def test_self_check_agrees_with_a_capture(rank_process: subprocess.Popen[bytes]) -> None:
    problem = await stacks().self_check()
    taken = await stacks().take(subject(rank_process.pid), native=False, timeout_s=90)

    assert bool(problem.reason) == bool(taken.reason)


def _state(proc: object, pid: int) -> str:
    stat = process.default_proc().stat(pid)
    return stat.state if stat else ""


def _as_nobody(foreign: Subject) -> dict[str, object]:
    """Take stacks in a child that has given up every privilege."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(make.NOBODY)
            os.setuid(make.NOBODY)
        taken = asyncio.run(stacks().take(foreign, native=False, timeout_s=90))
        answer = {"threads": len(taken.threads), "reason": taken.reason, "remedy": taken.remedy}
        os.write(writer, json.dumps(answer).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        data = pipe.read()
    os.waitpid(pid, 0)
    found: dict[str, object] = json.loads(data)
    return found
