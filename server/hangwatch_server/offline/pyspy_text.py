"""Reads what `py-spy dump` prints for people, of one process or of several (`--subprocesses`).

Lines that are not known are passed over: locals, arguments, and what a terminal has added.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from hangwatch_agent import wire

MAX_LINES = 400_000
MAX_LINE = 2000
MAX_PROCESSES = 64
MAX_NAME = 256
_PROCESS = re.compile(r"^Process (\d{1,9}): ")
_THREAD = re.compile(
    r'^Thread (0x[0-9A-Fa-f]{1,16}|\d{1,19})(?: \(([^)]{0,40})\))?(?:: "(.{0,200})")?'
)
_LINE = re.compile(r":(\d{1,9})$")


@dataclass(slots=True)
class _Thread:
    id: int
    name: str
    state: str
    frames: list[wire.Frame] = field(default_factory=list)


@dataclass(slots=True)
class _Process:
    pid: int
    threads: list[_Thread] = field(default_factory=list)


def looks_like(data: bytes) -> bool:
    """Whether a text has a thread's heading as py-spy writes it."""
    head = data[:65536].decode("utf-8", "replace")
    return any(_THREAD.match(line) for line in head.splitlines()[:2000])


def parse(data: bytes) -> tuple[tuple[int, tuple[wire.Thread, ...]], ...]:
    """(pid, threads) of each process, innermost frames first; pid 0 where the text has none."""
    found: list[_Process] = []
    for line in data.decode("utf-8", "replace").splitlines()[:MAX_LINES]:
        _take(found, line[:MAX_LINE].rstrip())
    return tuple(
        (process.pid, tuple(_thread(process.pid, thread) for thread in process.threads))
        for process in found[:MAX_PROCESSES]
        if process.threads
    )


def _take(found: list[_Process], line: str) -> None:
    if process := _PROCESS.match(line):
        found.append(_Process(int(process[1])))
    elif thread := _THREAD.match(line):
        if not found:
            found.append(_Process(0))
        threads = found[-1].threads
        if len(threads) < wire.MAX_THREADS:
            threads.append(_Thread(int(thread[1], 0), thread[3] or "", thread[2] or ""))
    elif found and found[-1].threads and (frame := _frame(line)):
        frames = found[-1].threads[-1].frames
        if len(frames) < wire.MAX_FRAMES_PER_STACK:
            frames.append(frame)


def _thread(pid: int, thread: _Thread) -> wire.Thread:
    return wire.Thread(
        pid=pid,
        thread_id=thread.id if thread.id < 2**31 else 0,
        name=thread.name[:64],
        frames=tuple(thread.frames),
        is_active=thread.state.startswith("active"),
        owns_gil="gil" in thread.state,
    )


def _frame(line: str) -> wire.Frame | None:
    """The frame of `    name (file:12)`; None for any other line.

    Cut at its first bracket and not by one expression, which a long line of brackets would keep
    busy for a second.
    """
    name, opened, rest = line[4:].partition(" (")
    is_frame = line.startswith("    ") and name[:1].strip() and opened and rest.endswith(")")
    if not is_frame or len(rest) < 2:
        return None
    place = rest[:-1]
    number = _LINE.search(place)
    file = place[: number.start()] if number else place
    return wire.Frame(
        name=name[:MAX_NAME],
        file=file[-MAX_NAME:],
        line=int(number[1]) if number else 0,
        is_native=not file.endswith((".py", ">")),
    )
