"""Capture parts on disk until the server has them. Bounded: beyond its size the oldest go, counted.

One file per part, written under a temporary name and renamed. A file that cannot be read is removed
and counted as dropped. On a full disk parts are kept in memory, within a smaller bound.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from hangwatch_agent import logs, wire
from hangwatch_agent.errors import RunDirError

MAX_IN_MEMORY = 16
_SUFFIX = ".part"


class Spooled(msgspec.Struct, frozen=True, kw_only=True):
    """A part with the moment it was taken, so that its age is right after a restart."""

    part: wire.CapturePart
    boot_id: str
    taken_ns: int  # CLOCK_MONOTONIC of that boot
    taken_wall_s: float  # used only when the node has booted since


@dataclass(frozen=True)
class Clock:
    """This boot's clocks; passed in, so that a test can move them."""

    boot_id: str
    monotonic_ns: int
    wall_s: float


_decoder = msgspec.msgpack.Decoder(Spooled)


def key_of(capture: str, launch: str, rank: int) -> str:
    """Name of a part's file: the same part written again replaces itself."""
    return hashlib.sha256(f"{capture}\0{launch}\0{rank}".encode()).hexdigest()[:32]


def age_s(spooled: Spooled, now: Clock) -> float:
    """Seconds since the part was taken, never less than its age when it was spooled."""
    if spooled.boot_id == now.boot_id:
        since = (now.monotonic_ns - spooled.taken_ns) / 1e9
    else:
        since = now.wall_s - spooled.taken_wall_s
    return spooled.part.age_s + max(0.0, since)


class Spool:
    """The spool of one agent. Calls touch the disk: make them from other threads, any number."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.dropped = 0
        self._folder = folder
        self._max_bytes = max_bytes
        self._memory: dict[str, Spooled] = {}
        _prepare(folder)

    def put(self, part: wire.CapturePart, now: Clock) -> str:
        """Keep `part`; its key."""
        key = key_of(part.capture, part.launch, part.rank)
        spooled = Spooled(
            part=part, boot_id=now.boot_id, taken_ns=now.monotonic_ns, taken_wall_s=now.wall_s
        )
        data = msgspec.msgpack.encode(spooled)
        try:
            _write(self._folder / f"{key}{_SUFFIX}", data)
        except OSError as error:
            logs.warning("spool_write_failed", folder=self._folder, error=error.strerror)
            self._keep_in_memory(key, spooled)
        self._shrink()
        return key

    def remove(self, key: str) -> None:
        self._memory.pop(key, None)
        (self._folder / f"{key}{_SUFFIX}").unlink(missing_ok=True)

    def keys(self) -> list[str]:
        """Keys of all parts, oldest first."""
        return [path.stem for path, _ in self._files()] + list(self._memory)

    def get(self, key: str, now: Clock) -> wire.CapturePart | None:
        """The part with its age as of `now`; None when it is gone or unreadable."""
        spooled = self._memory.get(key) or self._read(self._folder / f"{key}{_SUFFIX}")
        if spooled is None:
            return None
        return msgspec.structs.replace(spooled.part, age_s=age_s(spooled, now))

    def _read(self, path: Path) -> Spooled | None:
        try:
            return _decoder.decode(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError, RecursionError) as error:
            logs.warning("spool_file_unreadable", file=path.name, error=error)
            path.unlink(missing_ok=True)
            self.dropped += 1
            return None

    def _files(self) -> list[tuple[Path, int]]:
        found = sorted(_entries(self._folder), key=lambda item: item[0])
        return [(path, size) for _, path, size in found]

    def _shrink(self) -> None:
        files = self._files()
        total = sum(size for _, size in files)
        for path, size in files:
            if total <= self._max_bytes:
                break
            path.unlink(missing_ok=True)
            total -= size
            self.dropped += 1
            logs.warning("spool_full", dropped=self.dropped, limit_bytes=self._max_bytes)

    def _keep_in_memory(self, key: str, spooled: Spooled) -> None:
        self._memory[key] = spooled
        if len(self._memory) > MAX_IN_MEMORY:
            self._memory.pop(next(iter(self._memory)), None)
            self.dropped += 1


def _prepare(folder: Path) -> None:
    """Make the folder, ours and private: in a shared run dir others could have made it first."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        info = folder.lstat()
    except OSError as error:
        raise RunDirError(
            f"spool folder {folder} cannot be made: {error.strerror}; set HANGWATCH_SPOOL_DIR"
        ) from error
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid() or info.st_mode & 0o022:
        raise RunDirError(
            f"spool folder {folder} is not a private folder of uid {os.geteuid()}; "
            "remove it or set HANGWATCH_SPOOL_DIR"
        )
    for draft in folder.glob("*.new"):
        draft.unlink(missing_ok=True)


def _entries(folder: Path) -> Iterator[tuple[int, Path, int]]:
    for path in folder.glob(f"*{_SUFFIX}"):
        try:
            info = path.stat()
        except FileNotFoundError:
            continue
        yield info.st_mtime_ns, path, info.st_size


def _write(path: Path, data: bytes) -> None:
    draft = path.with_suffix(".new")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
