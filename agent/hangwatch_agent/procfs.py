"""Reads and parses the files of /proc that the agent needs. Keeps no state, concludes nothing.

Parsing functions take text, so that recorded contents can be tested. Every read is bounded, and
returns None when the process is gone or may not be read: for a watcher both are everyday events.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
MAX_READ = 256 * 1024
MEMORY_TIMEOUT_S = 0.25  # microseconds are usual
MAX_STUCK = 16
MAX_THREADS = 512  # of one process, whose children are asked for
T = TypeVar("T")
READ_ERRORS = (FileNotFoundError, ProcessLookupError, PermissionError, NotADirectoryError)


class Stat(msgspec.Struct, frozen=True, gc=False):
    """The fields of /proc/PID/stat that matter here."""

    pid: int
    name: str
    state: str
    parent: int
    cpu_ticks: int  # user + system
    threads: int
    start_ticks: int
    exit_status: int  # as waitpid gives it; 0 also when it may not be read
    stack_start: int = 0  # an address that fork copies and exec chooses anew; 0: not readable
    waited_ticks: int = 0  # user + system of children that have ended and were waited for


def parse_stat(text: str) -> Stat | None:
    """Parse proc_pid_stat(5); the name may hold spaces and parentheses, hence the last `)`."""
    opening, closing = text.find("("), text.rfind(")")
    fields = text[closing + 2 :].split()
    if opening < 0 or len(fields) < 20:
        return None
    return Stat(
        pid=int(text[:opening]),
        name=text[opening + 1 : closing],
        state=fields[0],
        parent=int(fields[1]),
        cpu_ticks=int(fields[11]) + int(fields[12]),
        threads=int(fields[17]),
        start_ticks=int(fields[19]),
        exit_status=int(fields[49]) if len(fields) > 49 else 0,
        waited_ticks=int(fields[13]) + int(fields[14]),
        stack_start=_address(fields[25]) if len(fields) > 25 else 0,
    )


def _address(text: str) -> int:
    """The kernel shows 0 or 1 for addresses of a process that we may not inspect."""
    return int(text) if int(text) > 1 else 0


@dataclass(frozen=True, slots=True)
class Schedule:
    """How the kernel has run a thread so far (/proc/PID/task/TID/schedstat)."""

    ran_ns: int  # on a core; also rises while it runs without a break
    delay_ns: int  # ready to run, and waiting for a core


def parse_schedule(text: str) -> Schedule | None:
    """Parse schedstat's three numbers: time on a core, time ready without one, times run."""
    fields = text.split()
    if len(fields) != 3 or not all(field.isdecimal() for field in fields):
        return None
    return Schedule(ran_ns=int(fields[0]), delay_ns=int(fields[1]))


def parse_uids(status: str) -> frozenset[int]:
    """Real, effective, saved and file-system uid of /proc/PID/status, as a set."""
    for row in status.splitlines():
        if row.startswith("Uid:"):
            return frozenset(int(word) for word in row.split()[1:])
    return frozenset()


def parse_namespace_pids(status: str) -> tuple[int, ...]:
    """The process's pid in each nested pid namespace, the reader's own first (NSpid)."""
    for row in status.splitlines():
        if row.startswith("NSpid:"):
            return tuple(int(word) for word in row.split()[1:])
    return ()


def parse_capabilities(status: str) -> int:
    """The effective capability set as bits."""
    for row in status.splitlines():
        if row.startswith("CapEff:"):
            return int(row.split()[1], 16)
    return 0


def parse_wchan(text: str) -> str:
    """The kernel function that it sleeps in, "" where it does not, or that may not be read."""
    return "" if text == "0" else text


def parse_io(text: str) -> int | None:
    """Bytes read and written by system calls, whatever they went to (rchar + wchar)."""
    total = 0
    for row in text.splitlines():
        name, _, value = row.partition(":")
        if name in ("rchar", "wchar"):
            total += int(value)
    return total if text else None


def parse_environ(data: bytes) -> dict[str, str]:
    """The environment a process was started with."""
    pairs = (item.partition(b"=") for item in data.split(b"\0") if b"=" in item)
    return {
        name.decode("utf-8", "replace"): value.decode("utf-8", "replace")
        for name, _, value in pairs
    }


def parse_cgroup(text: str) -> dict[str, str]:
    """Controller to path of /proc/PID/cgroup; the unified hierarchy has the key ""."""
    paths: dict[str, str] = {}
    for row in text.splitlines():
        _, controllers, path = row.split(":", 2)
        for controller in controllers.split(","):
            paths[controller] = path
    return paths


def parse_oom_kills(text: str) -> int | None:
    """The oom_kill count of memory.events (v2) or memory.oom_control (v1)."""
    for row in text.splitlines():
        name, _, value = row.partition(" ")
        if name == "oom_kill":
            return int(value)
    return None


class Procfs:
    """One /proc; another root serves tests and containers that mount the node's elsewhere."""

    def __init__(self, root: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> None:
        self._root = str(root)
        self._cgroups = cgroups
        self._stuck: dict[str, threading.Thread] = {}

    @property
    def root(self) -> Path:
        return Path(self._root)

    def pids(self) -> list[int]:
        return [int(name) for name in os.listdir(self._root) if name.isdecimal()]

    def stat(self, pid: int) -> Stat | None:
        text = self._text(f"{pid}/stat")
        return parse_stat(text) if text else None

    def main_thread(self, pid: int) -> Stat | None:
        text = self._text(f"{pid}/task/{pid}/stat")
        return parse_stat(text) if text else None

    def children(self, pid: int, *, of_all_threads: bool) -> list[int]:
        """The pids of its children now, as far as the kernel lists them; cheap beside a scan.

        A thread lists those that it started itself: the main thread's alone are one small file.
        """
        threads = self.threads(pid) if of_all_threads else [pid]
        texts = (self._text(f"{pid}/task/{thread}/children") for thread in threads[:MAX_THREADS])
        return [int(word) for text in texts if text for word in text.split()]

    def threads(self, pid: int) -> list[int]:
        try:
            return [int(name) for name in os.listdir(f"{self._root}/{pid}/task")]
        except OSError:
            return []

    def wchan(self, pid: int) -> str:
        return parse_wchan(self._text(f"{pid}/wchan") or "")

    def io_bytes(self, pid: int) -> int | None:
        return parse_io(self._text(f"{pid}/io") or "")

    def status(self, pid: int) -> str:
        return self._text(f"{pid}/status") or ""

    def uids(self, pid: int) -> frozenset[int]:
        return parse_uids(self.status(pid))

    def environ(self, pid: int) -> dict[str, str]:
        return parse_environ(self._read_memory(f"{pid}/environ") or b"")

    def arguments(self, pid: int) -> tuple[str, ...]:
        data = self._read_memory(f"{pid}/cmdline") or b""
        return tuple(word.decode("utf-8", "replace") for word in data.rstrip(b"\0").split(b"\0"))

    def executable(self, pid: int) -> str:
        try:
            return os.readlink(f"{self._root}/{pid}/exe")
        except OSError:
            return ""

    def oom_kills(self, pid: int) -> tuple[Path, int] | None:
        """The file that counts OOM kills in this process's cgroup, and its count now."""
        paths = parse_cgroup(self._text(f"{pid}/cgroup") or "")
        for controller, folder, name in (
            ("", self._cgroups, "memory.events"),
            ("memory", self._cgroups / "memory", "memory.oom_control"),
        ):
            if controller in paths:
                file = folder / paths[controller].lstrip("/") / name
                count = oom_kills_in(file)
                if count is not None:
                    return file, count
        return None

    def _read_memory(self, path: str) -> bytes | None:
        """Read a file that the kernel takes from the process's own memory.

        Such a read waits for the lock of the process's memory map, which a process that hangs in
        a page fault on dead storage never gives back.
        """
        return self.in_time(path, lambda: self._read(path))

    def in_time(self, path: str, read: Callable[[], T]) -> T | None:
        """What `read` gives of a file that may never answer, or None.

        It is left to a thread, and a file that did not answer in time is not asked for again while
        that thread still waits.
        """
        self._stuck = {name: reader for name, reader in self._stuck.items() if reader.is_alive()}
        if path in self._stuck or len(self._stuck) >= MAX_STUCK:
            return None
        found: list[T] = []
        reader = threading.Thread(target=lambda: found.append(read()), daemon=True)
        reader.start()
        reader.join(MEMORY_TIMEOUT_S)
        if reader.is_alive():
            self._stuck[path] = reader
            return None
        return found[0] if found else None

    def _text(self, path: str) -> str | None:
        data = self._read(path)
        return None if data is None else data.decode("utf-8", "replace")

    def _read(self, path: str) -> bytes | None:
        try:
            descriptor = os.open(f"{self._root}/{path}", os.O_RDONLY | os.O_CLOEXEC)
        except READ_ERRORS:
            return None
        try:
            return _read_all(descriptor)
        except OSError:
            return None
        finally:
            os.close(descriptor)


def ticks_now() -> int:
    """The present on the clock of Stat.start_ticks: ticks since the machine started."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * TICKS_PER_S)


def oom_kills_in(file: Path) -> int | None:
    """The oom_kill count in a cgroup's file; None when it is not there."""
    try:
        return parse_oom_kills(file.read_text())
    except OSError:
        return None


def _read_all(descriptor: int) -> bytes:
    data = os.read(descriptor, 8192)
    if len(data) < 4096:  # /proc gives whole small files at once
        return data
    parts, size = [data], len(data)
    while size < MAX_READ and (data := os.read(descriptor, MAX_READ - size)):
        parts.append(data)
        size += len(data)
    return b"".join(parts)
