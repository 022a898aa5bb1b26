"""Asks a rank for a recorder dump through its pipe, and reads the file that it then writes.

NCCL groups of torch make a FIFO `<stem><rank>.pipe` where TORCH_NCCL_DEBUG_INFO_PIPE_FILE is set;
any byte in it makes a C++ thread write a dump. The names come from the job, so only a FIFO and a
file of the rank's own user are touched, links lead nowhere but below the rank's own root, one in
the last place is not followed, and nothing is created. The storage may be what the job hangs on: no
file is touched in the agent's own thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hangwatch_agent import inside
from hangwatch_agent.dumps import pickles, reading, storage
from hangwatch_agent.dumps.reading import Dump
from hangwatch_agent.errors import DumpError

PIPE_NAME = "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"
FILE_NAMES = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
# torch before 2.8 wrote to /tmp; the name there is torch's own, and its owner is checked.
OLD_DEFAULT = "/tmp/nccl_trace_rank_"  # noqa: S108
POLL_S = 0.25
MAX_NAME = 4096


@dataclass(frozen=True)
class Subject:
    """The rank whose dump is wanted."""

    rank: int
    pid: int
    uid: int
    environ: Mapping[str, str]


@dataclass(frozen=True)
class _Place:
    """A path of the job, and the root below which it means what the job means."""

    root: Path
    path: str

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def opened(self, flags: int) -> contextlib.AbstractContextManager[int]:
        return inside.opened(self.root, self.path, flags)


@dataclass(frozen=True)
class _Seen:
    """A dump file as it stood at one moment."""

    inode: int
    size: int
    changed_ns: int


def has_pipe(environ: Mapping[str, str]) -> bool:
    return bool(environ.get(PIPE_NAME))


async def dump(subject: Subject, root: Path, timeout_s: float) -> Dump:
    """Trigger a dump and read it; raise DumpError with what is in the way.

    `root` is where the rank's own files are seen, `/proc/PID/root`.
    """
    try:
        async with asyncio.timeout(timeout_s + pickles.TIMEOUT_S):
            return await _dump(subject, root, timeout_s)
    except TimeoutError as error:
        raise DumpError("the storage of the dump does not answer") from error


async def _dump(subject: Subject, root: Path, timeout_s: float) -> Dump:
    files = [_under(root, name) for name in _file_names(subject)]
    look = partial(_look_at_all, files, subject.uid)
    before = await storage.visit(look)
    pipe = _under(root, f"{subject.environ.get(PIPE_NAME, '')}{subject.rank}.pipe")
    await storage.visit(partial(_write, pipe, subject.uid))
    end_s = time.monotonic() + timeout_s
    problem = DumpError(f"no dump was written within {timeout_s:g} s")
    last: dict[_Place, _Seen | None] = {}
    while time.monotonic() < end_s:
        await asyncio.sleep(POLL_S)
        for file, seen in (await storage.visit(look)).items():
            is_settled = seen is not None and seen == last.get(file)
            last[file] = seen
            if seen == before[file] or not is_settled:
                continue
            try:
                return await storage.visit(partial(_read, file, subject.uid))
            except DumpError as error:
                problem = error  # perhaps half written: it is read again when it has changed
                before[file] = seen
    raise problem


def _file_names(subject: Subject) -> list[str]:
    environ = subject.environ
    stems = [environ[name] for name in FILE_NAMES if environ.get(name)][:1]
    if not stems:
        cache = environ.get("XDG_CACHE_HOME") or f"{environ.get('HOME') or '/tmp'}/.cache"  # noqa: S108
        stems = [f"{cache}/torch/comm_lib_trace_rank_", OLD_DEFAULT]
    return [f"{stem}{subject.rank}" for stem in stems]


def _under(root: Path, path: str) -> _Place:
    """A path of the job; `..` and relative names lead nowhere."""
    is_plain = path.startswith("/") and ".." not in path.split("/")
    if not is_plain or len(path) > MAX_NAME or "\0" in path:
        raise DumpError(f"the job names {path[:80]!r}, which is no plain absolute path")
    return _Place(root, path)


def _look_at_all(files: Sequence[_Place], uid: int) -> dict[_Place, _Seen | None]:
    return {file: _look(file, uid) for file in files}


def _look(file: _Place, uid: int) -> _Seen | None:
    try:
        with file.opened(os.O_PATH) as handle:
            facts = os.fstat(handle)
    except OSError:
        return None
    if not stat.S_ISREG(facts.st_mode) or facts.st_uid != uid:
        return None
    return _Seen(facts.st_ino, facts.st_size, facts.st_mtime_ns)


def _write(pipe: _Place, uid: int) -> None:
    """One byte into the pipe; a pipe that nobody reads refuses to open at once."""
    try:
        # Looked at first: opening a device can have an effect by itself.
        with pipe.opened(os.O_PATH) as handle:
            if not stat.S_ISFIFO(os.fstat(handle).st_mode):
                raise DumpError(f"{pipe.name} is no pipe")
        with pipe.opened(os.O_WRONLY | os.O_NONBLOCK) as handle:
            facts = os.fstat(handle)
            if not stat.S_ISFIFO(facts.st_mode) or facts.st_uid != uid:
                raise DumpError(f"{pipe.name} is not a pipe of the rank's own user")
            os.write(handle, b"1")
    except OSError as error:
        raise DumpError(f"the dump pipe cannot be opened: {error.strerror}") from error


def _read(file: _Place, uid: int) -> Dump:
    try:
        with file.opened(os.O_RDONLY | os.O_NONBLOCK) as handle:
            facts = os.fstat(handle)
            if not stat.S_ISREG(facts.st_mode) or facts.st_uid != uid:
                raise DumpError(f"{file.name} is not a file of the rank's own user")
            with open(handle, "rb", closefd=False) as stream:
                data = stream.read(pickles.MAX_BYTES + 1)
    except OSError as error:
        raise DumpError(f"the dump cannot be read: {error.strerror}") from error
    return reading.read(data)
