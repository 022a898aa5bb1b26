"""Takes stacks of tracked processes with py-spy, and of nothing else. Knows no jobs and no server.

py-spy reads memory without stopping the process unless native frames are asked for. It is
interrupted before it is killed, since a killed py-spy has left its target stopped (py-spy #390);
afterwards the state is checked, and such a target continued. Right before each capture the
process is held by a pidfd and its identity read again, and right after it must still be alive, so
that what was read was this process. Locals are never read.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from hangwatch_agent import children, permissions, procfs, redaction, wire
from hangwatch_agent.permissions import Problem
from hangwatch_agent.process import Identity, open_pidfd

MAX_OUTPUT = 32 * 1024 * 1024
MAX_NAME = 256
INTERRUPT_GRACE_S = 1.0
_SELF_CHECK = "import sys; print(flush=True); sys.stdin.read()"


class RawFrame(msgspec.Struct):
    name: str = ""
    filename: str = ""
    module: str | None = None
    line: int = 0


class RawThread(msgspec.Struct):
    """A thread as `py-spy dump --json` prints it."""

    pid: int = 0
    thread_id: int = 0
    thread_name: str | None = None
    os_thread_id: int | None = None
    active: bool = False
    owns_gil: bool = False
    frames: list[RawFrame] = []


_decoder = msgspec.json.Decoder(list[RawThread])


@dataclass(frozen=True)
class Subject:
    """A process to read: a rank, or one of its children."""

    identity: Identity
    role: str
    is_python: bool
    name: str = ""


@dataclass(frozen=True)
class _Run:
    output: bytes
    error: str
    code: int | None  # None: it took too long


def parse(data: bytes) -> tuple[wire.Thread, ...]:
    """py-spy's JSON as threads, within the wire's limits; raise ValueError when it is none."""
    try:
        raw = _decoder.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"py-spy's output cannot be read: {error}") from error
    # The main thread first, so that a limit never cuts the one that matters.
    raw.sort(key=lambda thread: (thread.os_thread_id != thread.pid, not thread.owns_gil))
    return tuple(_thread(thread) for thread in raw[: wire.MAX_THREADS])


class Stacks:
    """py-spy on this node, at most `concurrency` at a time."""

    def __init__(
        self, proc: procfs.Procfs, *, concurrency: int, timeout_s: float, py_spy: str | None
    ) -> None:
        self._proc = proc
        self._slots = asyncio.Semaphore(max(1, concurrency))
        self._timeout_s = timeout_s
        self._py_spy = py_spy

    async def take(self, subject: Subject, *, native: bool, timeout_s: float) -> wire.ProcessStacks:
        """The stacks of one process, or the reason and remedy why there are none."""
        if self._py_spy is None:
            return _missing(subject, permissions.MISSING)
        if not subject.is_python:
            return _missing(subject, Problem(f"{subject.name} is not a Python process", "none"))
        limit_s = min(self._timeout_s, timeout_s)
        try:
            async with asyncio.timeout(timeout_s):
                await self._slots.acquire()
        except TimeoutError:
            return _missing(
                subject,
                Problem(
                    f"no py-spy slot became free within {timeout_s:g} s",
                    "raise HANGWATCH_CAPTURE_CONCURRENCY or capture fewer ranks at once",
                ),
            )
        try:
            return await self._held(subject, self._py_spy, native, limit_s)
        finally:
            self._slots.release()

    async def self_check(self) -> Problem:
        """Take the stacks of a child of our own; what stands in the way of that, if anything."""
        if self._py_spy is None:
            return permissions.MISSING
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-S",
            "-c",
            _SELF_CHECK,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            assert child.stdout is not None  # it was asked for above
            async with asyncio.timeout(self._timeout_s):
                await child.stdout.readline()
            stat = self._proc.stat(child.pid)
            if stat is None:
                return Problem()
            identity = Identity(child.pid, stat.start_ticks, os.geteuid())
            taken = await self.take(
                Subject(identity, "main", is_python=True), native=False, timeout_s=self._timeout_s
            )
        except TimeoutError:
            return Problem()  # a node too loaded to start Python says nothing about permission
        finally:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            await child.wait()
        return Problem(taken.reason, taken.remedy)

    async def _held(
        self, subject: Subject, py_spy: str, native: bool, limit_s: float
    ) -> wire.ProcessStacks:
        identity = subject.identity
        descriptor = open_pidfd(identity, self._proc)
        if descriptor is None:
            return _missing(subject, Problem("the process has gone", "none: it ended before"))
        try:
            before = self._state(identity)
            try:
                run = await _run(_command(py_spy, identity.pid, native), limit_s)
            finally:  # also when the agent itself is told to stop
                # Without native frames py-spy stops nobody: a stop meanwhile is somebody else's.
                note = self._continue_if_stopped(descriptor, identity, before) if native else ""
            is_alive = not _has_ended(descriptor)
        finally:
            os.close(descriptor)
        return self._result(subject, run, is_alive, note, limit_s)

    def _result(
        self, subject: Subject, run: _Run, is_alive: bool, note: str, limit_s: float
    ) -> wire.ProcessStacks:
        identity = subject.identity
        if run.code == 0 and is_alive:
            try:
                threads = parse(run.output)
            except ValueError as error:
                return _missing(subject, Problem(str(error)[:300], "upgrade py-spy"))
            return wire.ProcessStacks(
                pid=identity.pid, role=subject.role, threads=threads, reason=note
            )
        if run.code is None:
            problem = Problem(
                f"py-spy did not finish within {limit_s:g} s",
                "capture again without native frames, or raise HANGWATCH_CAPTURE_TIMEOUT_S",
            )
        else:
            problem = permissions.explain(
                run.error,
                uid=identity.uid,
                euid=os.geteuid(),
                can_ptrace=permissions.has_capability(self._proc),
                scope=permissions.yama_scope(),
                is_alive=is_alive,
            )
        reason = f"{problem.reason}; {note}" if note else problem.reason
        return _missing(subject, Problem(reason, problem.remedy))

    def _state(self, identity: Identity) -> str:
        stat = self._proc.stat(identity.pid)
        return stat.state if stat is not None else ""

    def _continue_if_stopped(self, descriptor: int, identity: Identity, before: str) -> str:
        """Undo a stop that py-spy left behind; the user's own stop stays."""
        if before in ("T", "t") or self._state(identity) not in ("T", "t"):
            return ""
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(descriptor, signal.SIGCONT)
        return "py-spy left the process stopped, and the agent let it continue"


def _command(py_spy: str, pid: int, native: bool) -> Sequence[str]:
    # py-spy refuses --native together with --nonblocking.
    mode = "--native" if native else "--nonblocking"
    return (py_spy, "dump", "--json", "--full-filenames", mode, "--pid", str(pid))


async def _run(command: Sequence[str], limit_s: float) -> _Run:
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(limit_s):
            output, error = await _outputs(process)
            code = await process.wait()
        return _Run(output, error, code)
    except TimeoutError:
        return _Run(b"", "", None)
    finally:
        await _end(process)


async def _outputs(process: asyncio.subprocess.Process) -> tuple[bytes, str]:
    assert process.stdout is not None  # both pipes were asked for
    assert process.stderr is not None
    async with asyncio.TaskGroup() as group:
        output = group.create_task(_bounded(process.stdout, MAX_OUTPUT))
        error = group.create_task(_bounded(process.stderr, wire.MAX_TEXT))
    return output.result(), error.result().decode("utf-8", "replace")


async def _bounded(reader: asyncio.StreamReader, limit: int) -> bytes:
    """Up to `limit` bytes; the rest is read and thrown away, so that the writer can finish."""
    parts: list[bytes] = []
    size = 0
    while data := await reader.read(65536):
        if size < limit:
            parts.append(data[: limit - size])
            size += len(data)
    return b"".join(parts)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Interrupt, wait, and only then kill: an interrupted py-spy detaches from its target."""
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGINT)
    try:
        async with asyncio.timeout(INTERRUPT_GRACE_S):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _has_ended(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


def _thread(raw: RawThread) -> wire.Thread:
    return wire.Thread(
        pid=raw.pid,
        thread_id=raw.os_thread_id or raw.thread_id,
        name=redaction.text((raw.thread_name or "")[:64]),
        frames=tuple(_frame(frame) for frame in raw.frames[: wire.MAX_FRAMES_PER_STACK]),
        is_active=raw.active,
        owns_gil=raw.owns_gil,
    )


def _frame(raw: RawFrame) -> wire.Frame:
    # py-spy names the shared library of native frames, and of those only.
    is_native = raw.module is not None and not raw.filename.endswith((".py", ">"))
    return wire.Frame(
        name=raw.name[:MAX_NAME],
        file=(raw.filename or raw.module or "")[-MAX_NAME:],
        line=raw.line,
        is_native=is_native,
    )


def _missing(subject: Subject, problem: Problem) -> wire.ProcessStacks:
    return wire.ProcessStacks(
        pid=subject.identity.pid,
        role=subject.role,
        threads=(),
        reason=problem.reason,
        remedy=problem.remedy,
    )


def is_worth_reading(role: str, is_python: bool) -> bool:
    """Children whose stacks may explain a wait.

    Loader workers and compilers, and what Python the user started: a rank can wait for any of it.
    """
    known = role in (children.LOADER, children.COMPILE, children.CHECKPOINT)
    return known or (is_python and role != children.HELPER)
