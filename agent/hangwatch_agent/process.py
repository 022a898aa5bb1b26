"""One rank's process over time: its state, CPU shares, children, and why it ended. Not its stacks.

A share is measured over the last few seconds, per thread, since the probe's thread and spinning
waiters move the CPU time of the whole process. Why a process is gone is said only from evidence;
without any it stays empty, and the cause unknown.
"""

from __future__ import annotations

import json
import os
import signal
import stat as file_modes
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from hangwatch_agent import children, procfs, wire
from hangwatch_agent.payload import ExitPayload

SHARE_WINDOW_S = 3.0
MAX_ERROR_FILE = 64 * 1024
ERROR_FILE_S = 10.0  # a rank writes it before it ends; later it is not looked for any more
GONE = "gone"
PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Identity:
    """A process of this node, for good: a pid alone is reused."""

    pid: int
    start_ticks: int
    uid: int


class Share:
    """Share of a sliding window that a growing count of time takes, in units of `per_s`."""

    def __init__(self, per_s: float = procfs.TICKS_PER_S) -> None:
        self._per_s = per_s
        self._samples: deque[tuple[float, int]] = deque(maxlen=64)

    def add(self, now_s: float, count: int) -> float | None:
        """Record a sample; the share of the window, None before there are two."""
        self._samples.append((now_s, count))
        while len(self._samples) > 2 and self._samples[1][0] <= now_s - SHARE_WINDOW_S:
            self._samples.popleft()
        first_s, first = self._samples[0]
        if now_s <= first_s:
            return None
        return max(0.0, (count - first) / self._per_s / (now_s - first_s))


class Stillness:
    """Since when the kernel has not run a thread at all.

    Exact where a share of CPU time is not: a thread in a blocking wait is never run, one that
    polls or trains in small steps is.
    """

    def __init__(self) -> None:
        self._ran_ns: int | None = None
        self._since_s = 0.0

    def add(self, now_s: float, ran_ns: int, *, is_ready: bool) -> float:
        """For how long it has stood still, as far as this has been watched.

        `is_ready`: it would run if it were given a core, and so is not still.
        """
        if is_ready or ran_ns != self._ran_ns:
            self._ran_ns, self._since_s = ran_ns, now_s
        return now_s - self._since_s


@dataclass(frozen=True, slots=True)
class ExitFacts:
    """What is known of an end: exit code, signal, and a reason in words ("" = unknown)."""

    code: int | None = None
    signal: int | None = None
    reason: str = ""


@dataclass
class Child:
    """A descendant with its history."""

    stat: procfs.Stat
    role: str
    is_python: bool
    share: Share = field(default_factory=Share)
    facts: wire.ChildFacts | None = None


class Process:
    """Follows one process; `observe` is called about once a second."""

    def __init__(self, proc: procfs.Procfs, identity: Identity, error_file: str = "") -> None:
        self.identity = identity
        self.children: dict[int, Child] = {}
        self.gone_at_s: float | None = None
        self.alive_at_ticks: int | None = None  # last seen so; on the clock that start_ticks is on
        self._proc = proc
        self._error_file = error_file
        self._error_text = ""
        self._main_share = Share()
        self._main_delay = Share(per_s=1e9)
        self._main_stillness = Stillness()
        self._oom = proc.oom_kills(identity.pid)
        self._zombie_status: int | None = None
        self._arguments = proc.arguments(identity.pid)
        self._last = wire.ProcessFacts(state="?")

    @property
    def is_gone(self) -> bool:
        return self.gone_at_s is not None

    @property
    def arguments(self) -> tuple[str, ...]:
        return self._arguments

    @property
    def state(self) -> str:
        return self._last.state

    def note_exit(self) -> None:
        """Look at once, while a process that just ended is still a zombie with its status."""
        stat = self._proc.stat(self.identity.pid)
        if stat is not None and stat.start_ticks == self.identity.start_ticks:
            self._note_zombie(stat)

    def adopt_children(self, below: list[procfs.Stat]) -> None:
        """Take the descendants from a scan of /proc, keeping the history of known ones."""
        known = self.children
        self.children = {}
        for stat in below:
            child = known.get(stat.pid)
            if child is None or child.stat.start_ticks != stat.start_ticks:
                child = self._new_child(stat)
            self.children[stat.pid] = child

    def observe(self, now_s: float, mark: ExitPayload | None) -> wire.ProcessFacts:
        """The facts at `now_s` (monotonic); `mark` is the record's exit mark, if it has one."""
        if not self.is_gone:
            stat = self._proc.stat(self.identity.pid)
            if stat is None or stat.start_ticks != self.identity.start_ticks:
                self.gone_at_s = now_s
            else:
                self._last = self._facts(stat, now_s)
                if self._last.state not in "ZX":
                    self.alive_at_ticks = procfs.ticks_now()
        if self.is_gone or self._last.state in "ZX":
            self._last = self._ended(mark, now_s)
        return self._last

    def as_captured(self, facts: wire.ProcessFacts) -> wire.ProcessFacts:
        """`facts` with what goes with a stack that was taken just now: where the kernel waits."""
        if self.is_gone or facts.state in "ZX":
            return facts
        return msgspec.structs.replace(facts, wchan=self._proc.wchan(self.identity.pid)[:64])

    def _facts(self, stat: procfs.Stat, now_s: float) -> wire.ProcessFacts:
        pid = self.identity.pid
        self._note_zombie(stat)
        main = self._proc.main_thread(pid) or stat
        ran = self._proc.main_schedule(pid)
        return wire.ProcessFacts(
            # The main thread's state: it is the one that trains. A stop concerns all threads.
            state=stat.state if stat.state in "ZXTt" else main.state,
            wchan=self._proc.wchan(pid)[:64],
            cpu_s=stat.cpu_ticks / procfs.TICKS_PER_S,
            main_cpu_s=main.cpu_ticks / procfs.TICKS_PER_S,
            main_cpu_share=self._main_share.add(now_s, main.cpu_ticks),
            main_still_s=self._still_s(now_s, ran, main) if ran else None,
            main_delay_share=self._main_delay.add(now_s, ran.delay_ns) if ran else None,
            io_bytes=self._proc.io_bytes(pid),
            threads=stat.threads,
            children=tuple(self._children(now_s)),
        )

    def _still_s(self, now_s: float, ran: procfs.Schedule, main: procfs.Stat) -> float:
        return self._main_stillness.add(now_s, ran.ran_ns, is_ready=main.state == "R")

    def _children(self, now_s: float) -> list[wire.ChildFacts]:
        found = []
        for pid, child in list(self.children.items()):
            stat = self._proc.stat(pid)
            if stat is None or stat.start_ticks != child.stat.start_ticks:
                del self.children[pid]
                continue
            child.facts = wire.ChildFacts(
                pid=pid,
                name=stat.name,
                role=child.role,
                state=stat.state,
                wchan=self._proc.wchan(pid)[:64],
                cpu_share=child.share.add(now_s, stat.cpu_ticks),
                parent=stat.parent,
            )
            found.append(child.facts)
        return found

    def _new_child(self, stat: procfs.Stat) -> Child:
        arguments = self._proc.arguments(stat.pid)
        parent = self.children.get(stat.parent)
        role = children.role_of(
            stat.name, arguments, parent.role if parent else "", self._arguments
        )
        runs_python = children.is_python(arguments, self._proc.executable(stat.pid))
        return Child(stat=stat, role=role, is_python=runs_python)

    def _note_zombie(self, stat: procfs.Stat) -> None:
        # The kernel shows status 0 of processes that we may not inspect: then it is unknown.
        may_read = os.geteuid() in (0, self.identity.uid)
        if stat.state == "Z" and may_read:
            self._zombie_status = stat.exit_status

    def _ended(self, mark: ExitPayload | None, now_s: float) -> wire.ProcessFacts:
        if not self._error_text and now_s < (self.gone_at_s or now_s) + ERROR_FILE_S:
            self._error_text = self._read_error_file()
        end = exit_of(
            mark,
            self._zombie_status,
            error_text=self._error_text,
            is_oom_killed=self._is_oom_killed(),
        )
        return wire.ProcessFacts(
            state=GONE if self.is_gone else "Z",
            cpu_s=self._last.cpu_s,
            main_cpu_s=self._last.main_cpu_s,
            io_bytes=self._last.io_bytes,
            exit_code=end.code,
            exit_signal=end.signal,
            exit_reason=end.reason[:500],
        )

    def _read_error_file(self) -> str:
        """The job names the file: it may lie on storage that never answers."""
        path, uid = self._error_file, self.identity.uid
        if not path:
            return ""
        return self._proc.in_time(path, lambda: read_error_file(path, uid)) or ""

    def _is_oom_killed(self) -> bool:
        if self._oom is None:
            return False
        file, before = self._oom
        return (procfs.oom_kills_in(file) or 0) > before


def exit_of(
    mark: ExitPayload | None, zombie_status: int | None, *, error_text: str, is_oom_killed: bool
) -> ExitFacts:
    """Put the evidence of an end together; what nothing speaks of stays None or empty."""
    code, number = (mark.code if mark else None), None
    if zombie_status is not None:
        code, number = _status(zombie_status)
    if mark is not None and mark.exception:
        return ExitFacts(code, number, f"uncaught {mark.exception}")
    if error_text:
        return ExitFacts(code, number, error_text)
    if is_oom_killed and mark is None and number in (None, signal.SIGKILL) and code is None:
        return ExitFacts(code, number or signal.SIGKILL, "oom_kill (the cgroup's count rose)")
    if number is not None:
        return ExitFacts(code, number, f"killed by {_signal_name(number)}")
    if code is not None:
        return ExitFacts(code, number, "exited" if code == 0 else f"exited with code {code}")
    return ExitFacts()


def read_error_file(path: str, uid: int) -> str:
    """The message in the file that torchelastic lets a failing rank write; "" if there is none.

    The path comes from the job: only a regular file of the job's own user is read, never a link.
    It is looked at before it is opened, since opening alone already acts on some devices.
    """
    if not path:
        return ""
    try:
        place = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (OSError, ValueError):  # ValueError: a NUL in the path
        return ""
    try:
        info = os.fstat(place)
        if not file_modes.S_ISREG(info.st_mode) or info.st_uid != uid:
            return ""
        with open(f"/proc/self/fd/{place}", "rb") as file:
            return error_message(file.read(MAX_ERROR_FILE))
    except OSError:
        return ""
    finally:
        os.close(place)


def error_message(data: bytes) -> str:
    """First line of the message in torchelastic's error file (torch.distributed.elastic errors)."""
    try:
        message = json.loads(data)["message"]
        text = message["message"] if isinstance(message, dict) else message
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    # JSON can hold halves of characters, which no frame can carry.
    whole = str(text).encode("utf-8", "replace").decode()
    first = whole.strip().splitlines()
    return f"uncaught {first[0][:300]}" if first else ""


def _status(status: int) -> tuple[int | None, int | None]:
    if os.WIFSIGNALED(status):
        return None, os.WTERMSIG(status)
    return os.WEXITSTATUS(status), None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def open_pidfd(identity: Identity, proc: procfs.Procfs) -> int | None:
    """A descriptor that stays with this very process, or None when it is gone or another's now.

    The start time and every uid are read after the descriptor is open: a process that changed
    hands (a reused pid, a set-uid program) is refused.
    """
    try:
        descriptor = os.pidfd_open(identity.pid)
    except OSError:
        return None
    stat = proc.stat(identity.pid)
    is_same = stat is not None and stat.start_ticks == identity.start_ticks
    if is_same and proc.uids(identity.pid) == {identity.uid}:
        return descriptor
    os.close(descriptor)
    return None


def default_proc() -> procfs.Procfs:
    return procfs.Procfs(PROC)
