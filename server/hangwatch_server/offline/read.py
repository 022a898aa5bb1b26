"""Reads one file: what it is by its bytes, and what it says; or why not, at which byte.

The readers are the agent's, which treat every file as written by a stranger.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from hangwatch_agent import stacks as pyspy
from hangwatch_agent import wire
from hangwatch_agent.dumps import reading as dumps
from hangwatch_agent.errors import AgentError, DumpError
from hangwatch_agent.ras import answer as ras_json
from hangwatch_agent.ras import text as ras_text
from hangwatch_agent.ras.status import Status
from hangwatch_server.offline import pyspy_text, seems
from hangwatch_server.offline.model import File, FileKind, Reading

MAX_FILE_BYTES = 64 * 1024 * 1024
MAX_REASON = 300
_RANK = re.compile(r"(?:rank|global_?rank|gr)[_\-. ]?([0-9]{1,7})", re.IGNORECASE)
_NUMBER = re.compile(r"([0-9]{1,7})(?!.*[0-9])")
_EXTENSION = re.compile(r"(\.(json|pickle|pkl|txt|log|dump|out|trace))+$", re.IGNORECASE)
_BYTE = re.compile(r"\(byte (\d+)\)")
_WORKER = "_worker_loop"
_AGAIN = "let the rank write it again, or copy it again"
_WANTED = "give a flight recorder dump, an answer of NCCL RAS, or py-spy output"


def read(file: File) -> Reading:
    """Never raises: what cannot be read has a problem and a remedy instead."""
    if len(file.data) > MAX_FILE_BYTES:
        return _refused(
            file, f"it has {len(file.data)} bytes, and {MAX_FILE_BYTES} are the most", "split it"
        )
    reader = _reader(file.data.lstrip(b"\xef\xbb\xbf \t\r\n"))
    if reader is None:
        what, remedy = seems.guess(file.data)
        return _refused(file, f"it seems to be {what}", remedy)
    try:
        return reader(file)
    except (AgentError, ValueError, RecursionError, MemoryError) as error:
        return _refused(file, _reason(file.data, error), _remedy(file.data, error))


def unread(file: File) -> Reading:
    """What is said of a file for which there was no time."""
    return _refused(
        file, "there was no time left to read it", "give fewer files, or run hangwatch diagnose"
    )


def rank_of(name: str) -> int | None:
    """The rank that a file's name says: `comm_lib_trace_rank_5`, `r/rank5.json`, `stacks-5.txt`."""
    base = name.replace("\\", "/").rsplit("/", 1)[-1]
    named = _RANK.findall(base)
    if named:
        return int(named[-1])
    number = _NUMBER.search(_EXTENSION.sub("", base))
    return int(number[1]) if number else None


def _reader(text: bytes) -> Callable[[File], Reading] | None:
    """Who reads a file that begins so; None for what nobody knows."""
    if text[:1] == b"\x80":
        return _recorder
    if text[:1] == b"{":
        return _ras_json if b'"communicators"' in text else _recorder
    if text[:1] == b"[":
        return _stacks_json
    if text[:1] in (b"(", b"}", b"]") and b"pg_config" in text:
        return _recorder  # a pickle of an old protocol
    if b"NCCL version" in text[:4096] and b"Communicator" in text:
        return _ras_text
    return _stacks_text if pyspy_text.looks_like(text) else None


def _recorder(file: File) -> Reading:
    if not any(key in file.data for key in (b"pg_config", b"pg_status", b"entries")):
        raise DumpError("it has none of the parts of a recorder dump (entries, pg_config)")
    data = file.data.lstrip(b"\xef\xbb\xbf \t\r\n") if file.data[:1] != b"\x80" else file.data
    return Reading(
        name=file.name,
        size_bytes=len(file.data),
        kind=FileKind.RECORDER,
        rank=rank_of(file.name),
        dump=dumps.read(data),
    )


def _ras_json(file: File) -> Reading:
    return _ras(file, ras_json.parse)


def _ras_text(file: File) -> Reading:
    return _ras(file, ras_text.parse)


def _ras(file: File, parse: Callable[[bytes], Status]) -> Reading:
    status = parse(file.data)
    return Reading(name=file.name, size_bytes=len(file.data), kind=FileKind.RAS, ras=status)


def _stacks_json(file: File) -> Reading:
    threads = pyspy.parse(file.data)
    pids = list(dict.fromkeys(thread.pid for thread in threads))
    # Threads come sorted; of several processes the first one asked for has the lowest pid.
    found = [(pid, tuple(t for t in threads if t.pid == pid)) for pid in sorted(pids)]
    return _stacks(file, tuple(found))


def _stacks_text(file: File) -> Reading:
    return _stacks(file, pyspy_text.parse(file.data))


def _stacks(file: File, found: tuple[tuple[int, tuple[wire.Thread, ...]], ...]) -> Reading:
    if not any(thread.frames for _, threads in found for thread in threads):
        raise ValueError("it holds no thread with a frame")
    processes = [
        wire.ProcessStacks(pid=pid, role=_role(index, threads), threads=threads)
        for index, (pid, threads) in enumerate(found)
    ]
    return Reading(
        name=file.name,
        size_bytes=len(file.data),
        kind=FileKind.STACKS,
        rank=rank_of(file.name),
        stacks=tuple(processes),
    )


def _role(index: int, threads: tuple[wire.Thread, ...]) -> str:
    if index == 0:
        return "main"
    names = {frame.name for thread in threads for frame in thread.frames}
    return "loader" if _WORKER in names else "other"


def _refused(file: File, problem: str, remedy: str) -> Reading:
    return Reading(
        name=file.name,
        size_bytes=len(file.data),
        rank=rank_of(file.name),
        problem=problem[:MAX_REASON],
        remedy=remedy,
    )


def _reason(data: bytes, error: BaseException) -> str:
    text = str(error) or type(error).__name__
    if "truncated" in text:
        return f"it ends early, at {seems.place(data, len(data))}: it was not written to its end"
    text = text.removeprefix("the dump cannot be read: ")
    return _BYTE.sub(lambda found: f"at {seems.place(data, int(found[1]))}", text)


def _remedy(data: bytes, error: BaseException) -> str:
    text = str(error)
    if "opcode" in text:
        return "it is a program, not plain data, and is not run; torch writes no such dump"
    if "truncated" in text or "ends early" in text or "ended early" in text:
        return _AGAIN
    return _WANTED if data[:1] in b"{[" else _AGAIN
