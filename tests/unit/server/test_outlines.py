"""What a stored outline keeps of a rank's processes, and what it tells apart."""

from __future__ import annotations

from hangwatch_agent import wire
from hangwatch_server import outlines

MAIN = wire.Frame(name="main", file="/home/u/train.py", line=9)
LOAD = wire.Frame(name="load", file="/home/u/train.py", line=31)


def process(pid: int, *frames: wire.Frame, role: str = "main") -> wire.ProcessStacks:
    thread = wire.Thread(pid=pid, thread_id=pid, name="MainThread", frames=frames)
    beside = wire.Thread(pid=pid, thread_id=pid + 1, name="other", frames=(LOAD,) * (pid % 7))
    return wire.ProcessStacks(pid=pid, role=role, threads=(thread, beside))


def test_an_outline_comes_back_as_it_was_packed() -> None:
    outline = outlines.of(3, [process(70, MAIN), process(2**40, LOAD, MAIN, role="loader")])

    assert outlines.unpack(3, outlines.pack(outline)) == outline
    assert [pid for pid, _ in outline.processes] == [70, 2**40]


def test_equal_main_threads_have_one_key_whatever_pids_and_other_threads_are() -> None:
    one, other = outlines.of(0, [process(70, MAIN)]), outlines.of(1, [process(85, MAIN)])

    assert one.processes[0][1] == other.processes[0][1]


def test_another_line_or_role_or_depth_has_another_key() -> None:
    different = [
        process(1, MAIN),
        process(1, wire.Frame(name="main", file="/home/u/train.py", line=10)),
        process(1, LOAD, MAIN),
        process(1, wire.Frame(name="main", file="/home/u/train.py", line=9, is_native=True)),
        process(1, MAIN, role="loader"),
    ]

    keys = {key for one in different for _, key in outlines.of(0, [one]).processes}

    assert len(keys) == len(different)


def test_a_process_without_frames_is_left_out() -> None:
    silent = wire.ProcessStacks(pid=71, role="loader", threads=(), reason="no ptrace permission")

    outline = outlines.of(0, [process(70), silent, process(72, MAIN)])

    assert [pid for pid, _ in outline.processes] == [72]
