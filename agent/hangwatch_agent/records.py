"""Reads the records that probes leave in a run dir. The layout is in probe/record.py.

A record is written by whoever may write to the run dir, so everything in it is hostile input: no
link is followed, sizes are bounded, and whatever is wrong becomes a sentence in `problem`, never an
exception. Whether the named process really is the record's owner is for the caller to check, by
uid, pid and start ticks.
"""

from __future__ import annotations

import os
import re
import stat
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from hangwatch_agent.payload import ExitPayload, RecordPayload
from hangwatch_agent.probe import record

NAME = re.compile(r"\d{1,10}\.\d{1,20}\.record")
MAX_FILES = 4096  # of one run dir; more than any node has ranks
MAX_FILE_BYTES = 1024 * 1024
MAX_SLOTS = 4
SETTLED_S = 2.0
TRIES = 4  # a reader meets a writer once per second at most

_decode_record = msgspec.json.Decoder(RecordPayload)
_decode_exit = msgspec.json.Decoder(ExitPayload)
P = TypeVar("P", RecordPayload, ExitPayload)


@dataclass(frozen=True)
class Record:
    """One record file as it stands now; `problem` says why something in it could not be read."""

    path: Path
    uid: int = -1
    pid: int = -1
    start_ticks: int = -1
    payload: RecordPayload | None = None
    exit: ExitPayload | None = None
    format_version: int = 0
    problem: str = ""
    is_absent: bool = False  # there is no such file


@dataclass(frozen=True)
class _Header:
    version: int
    header_size: int
    total_size: int
    slot_size: int
    slots: int
    exit_size: int
    pid: int
    start_ticks: int


class _Slot(NamedTuple):
    """Where a payload lies, and its checksum."""

    beat: int
    offset: int
    length: int
    crc: int


class _UnreadableError(Exception):
    """Why a record cannot be read, in words."""


def scan(run_dir: Path) -> list[Path]:
    """The record files of a run dir, by name; empty when the folder cannot be read."""
    try:
        with os.scandir(run_dir) as items:
            names = [item.name for item in items if NAME.fullmatch(item.name)]
    except OSError:
        return []
    return [run_dir / name for name in sorted(names)[:MAX_FILES]]


class Folder:
    """The record files of a run dir, listed anew only when the folder has changed."""

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir
        self._seen: tuple[int, ...] = ()
        self._paths: list[Path] = []

    def paths(self, wall_s: float) -> list[Path]:
        """As `scan` gives them; `wall_s` is the time now on the clock of the files."""
        try:
            info = os.stat(self._run_dir)
        except OSError:
            info = None
        seen = (info.st_dev, info.st_ino, info.st_mtime_ns) if info else ()
        if not seen or seen != self._seen:
            self._paths = scan(self._run_dir)
            # Files that come within one tick of that clock all leave the same time behind.
            is_settled = info is not None and info.st_mtime < wall_s - SETTLED_S
            self._seen = seen if is_settled else ()
        return self._paths


def read(path: Path) -> Record:
    """Read one record; never raises on whatever stands there."""
    uid = -1
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        is_absent = isinstance(error, FileNotFoundError)
        problem = f"record cannot be opened: {error.strerror}"
        return Record(path=path, problem=problem, is_absent=is_absent)
    try:
        facts = os.fstat(handle)
        uid = facts.st_uid
        if not stat.S_ISREG(facts.st_mode):
            raise _UnreadableError("record is not a regular file")
        if not record.HEADER_SIZE <= facts.st_size <= MAX_FILE_BYTES:
            raise _UnreadableError(f"record has an impossible size of {facts.st_size} bytes")
        return _parse(path, uid, handle)
    except _UnreadableError as error:
        return Record(path=path, uid=uid, problem=str(error))
    except OSError as error:
        return Record(path=path, uid=uid, problem=f"record cannot be read: {error.strerror}")
    finally:
        os.close(handle)


def _parse(path: Path, uid: int, handle: int) -> Record:
    header = _header(os.pread(handle, record.HEADER.size, 0))
    found: RecordPayload | None = None
    mark: ExitPayload | None = None
    problem = ""
    for _ in range(TRIES):
        found, problem = _newest(header, handle)
        mark = _exit_mark(header, handle)
        if found is not None:
            break
    if found is None and header.version > record.FORMAT_VERSION:
        problem = (
            f"record has format {header.version}, newer than the {record.FORMAT_VERSION} this "
            f"agent reads: update Hangwatch on this node ({problem})"
        )
    return Record(
        path=path,
        uid=uid,
        pid=header.pid,
        start_ticks=header.start_ticks,
        payload=found,
        exit=mark,
        format_version=header.version,
        problem="" if found is not None else problem,
    )


def _header(data: bytes) -> _Header:
    if len(data) < record.HEADER.size or not data.startswith(record.MAGIC):
        raise _UnreadableError("file is not a Hangwatch record")
    header = _Header(*record.HEADER.unpack(data)[1:])
    size = header.header_size + header.exit_size + header.slots * header.slot_size
    if not 1 <= header.slots <= MAX_SLOTS or not size <= header.total_size <= MAX_FILE_BYTES:
        raise _UnreadableError("record's header contradicts itself")
    if header.slot_size < record.SLOT.size or header.exit_size < record.SLOT.size:
        raise _UnreadableError("record's slots are too small to hold anything")
    return header


def _newest(header: _Header, handle: int) -> tuple[RecordPayload | None, str]:
    """The valid payload with the highest beat, or None and the reason."""
    begin = header.header_size + header.exit_size
    slots = (
        _slot(handle, begin + index * header.slot_size, header.slot_size)
        for index in range(header.slots)
    )
    problem = "record holds no complete beat yet"
    for slot in sorted(filter(None, slots), key=lambda slot: slot.beat, reverse=True):
        text = _text(handle, slot)
        if text is not None:
            found, problem = _decoded(_decode_record, text)
            if found is not None:
                return found, ""
    return None, problem


def _exit_mark(header: _Header, handle: int) -> ExitPayload | None:
    slot = _slot(handle, header.header_size, header.exit_size)
    text = _text(handle, slot) if slot else None
    return None if text is None else _decoded(_decode_exit, text)[0]


def _slot(handle: int, offset: int, size: int) -> _Slot | None:
    """The slot at `offset`, unless it is empty or being written."""
    head = os.pread(handle, record.SLOT.size, offset)
    if len(head) < record.SLOT.size:
        return None
    sequence, beat, length, crc = record.SLOT.unpack(head)
    if sequence == 0 or sequence % 2 or not 0 < length <= size - record.SLOT.size:
        return None
    return _Slot(beat, offset + record.SLOT.size, length, crc)


def _text(handle: int, slot: _Slot) -> bytes | None:
    """What a slot holds; None where it was written to meanwhile, or is torn."""
    text = os.pread(handle, slot.length, slot.offset)
    return text if len(text) == slot.length and zlib.crc32(text) == slot.crc else None


def _decoded(decoder: msgspec.json.Decoder[P], text: bytes) -> tuple[P | None, str]:
    try:
        return decoder.decode(text), ""
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        return None, f"record's payload cannot be read: {str(error)[:200]}"
