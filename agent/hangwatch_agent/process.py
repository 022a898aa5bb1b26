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
from dataclasses import dataclass
from pathlib import Path

import msgspec

from hangwatch_agent import held, procfs, redaction, wire
from hangwatch_agent.offspring import Offspring
from hangwatch_agent.payload import ExitPayload
from hangwatch_agent.shares import Share, Stillness

MAX_ERROR_FILE = 64 * 1024
ERROR_FILE_S = 10.0  # a rank writes it before it ends; later it is not looked for any more
WAITS_SHARE = 0.05  # of a core: a main thread that trains takes more
GONE = "gone"
PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Identity:
    """A process of this node, for good: a pid alone is reused."""

    pid: int
    start_ticks: int
    uid: int


@dataclass(frozen=True, slots=True)
class ExitFacts:
    """What is known of an end: exit code, signal, and a reason in words ("" = unknown)."""

    code: int | None = None
    signal: int | None = None
    reason: str = ""


class Process:
    """Follows one process; `observe` is called about once a second."""

    def __init__(self, proc: procfs.Procfs, identity: Identity, error_file: str = "") -> None:
        self.identity = identity
        self.gone_at_s: float | None = None
        self.readers = 0  # captures under way that stop it while they read it
        self.alive_at_ticks: int | None = None  # last seen so; on the clock that start_ticks is on
        self._proc = proc
        self._files = held.Files(proc.root / str(identity.pid))
        self._error_file = error_file
        self._error_text = ""
        self._main_share = Share(per_s=1e9)
        self._main_delay = Share(per_s=1e9)
        self._main_stillness = Stillness()
        self._ended_share = Share()
        self._oom = proc.oom_kills(identity.pid)
        self._zombie_status: int | None = None
        self._arguments = proc.arguments(identity.pid)
        self.offspring = Offspring(proc, identity.pid, self._arguments)
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

    def observe(
        self, now_s: float, mark: ExitPayload | None, *, is_moving: bool = False
    ) -> wire.ProcessFacts:
        """The facts at `now_s` (monotonic); `mark` is the record's exit mark, if it has one.

        `is_moving`: the probe sees the rank go on, so that its children are looked at less often.
        """
        if not self.is_gone:
            stat = procfs.parse_stat(self._files.read("stat"))
            if stat is None or stat.start_ticks != self.identity.start_ticks:
                self.gone_at_s = now_s
                self._files.close()
            else:
                self._last = self._facts(stat, now_s, is_moving)
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

    def _facts(self, stat: procfs.Stat, now_s: float, is_moving: bool) -> wire.ProcessFacts:
        self._note_zombie(stat)
        read = self._files.read
        ran = procfs.parse_schedule(read(f"task/{self.identity.pid}/schedstat"))
        main_ns = ran.ran_ns if ran else self._main_ns(stat)
        main_share = self._main_share.add(now_s, main_ns)
        is_waiting = (main_share or 0.0) < WAITS_SHARE
        return wire.ProcessFacts(
            # The main thread's, in this file too: it is the one that trains.
            state=stat.state,
            wchan=procfs.parse_wchan(read("wchan"))[:64],
            cpu_s=stat.cpu_ticks / procfs.TICKS_PER_S,
            main_cpu_s=main_ns / 1e9,
            main_cpu_share=main_share,
            main_still_s=self._still_s(now_s, ran, stat) if ran else None,
            main_delay_share=self._main_delay.add(now_s, ran.delay_ns) if ran else None,
            io_bytes=procfs.parse_io(read("io")),
            threads=stat.threads,
            children=self.offspring.observe(now_s, is_waiting=is_waiting, is_moving=is_moving),
            ended_share=self._ended_share.add(now_s, stat.waited_ticks),
            is_being_read=self.readers > 0,
        )

    def _main_ns(self, stat: procfs.Stat) -> int:
        """CPU time of the main thread where the kernel keeps no statistics of its schedule."""
        main = self._proc.main_thread(self.identity.pid) or stat
        return main.cpu_ticks * 10**9 // procfs.TICKS_PER_S

    def _still_s(self, now_s: float, ran: procfs.Schedule, stat: procfs.Stat) -> float:
        return self._main_stillness.add(now_s, ran.ran_ns, is_ready=stat.state == "R")

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
            exit_reason=redaction.text(end.reason)[:500],
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
