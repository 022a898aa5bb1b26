"""The record file: its layout, and the writer that the probe uses; hangwatch_agent.records reads.

Layout, little endian. Header (128 bytes): magic, format version, header size, total size, slot
size, slot count, exit mark size, pid, start ticks. Then the exit mark area, then two slots. A slot
and the exit mark start alike: sequence (odd while being written), beat, length, CRC-32; the payload
follows. The two slots are written in turn, so a writer that dies half way leaves the other whole.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import zlib

MAGIC = b"HANGWREC"
FORMAT_VERSION = 1
HEADER = struct.Struct("<8sIIIIIIQQ")
HEADER_SIZE = 128
SLOT = struct.Struct("<QQII")
SLOT_COUNT = 2
MAX_PAYLOAD = 64 * 1024
SLOT_SIZE = SLOT.size + MAX_PAYLOAD
EXIT_SIZE = 1024
TOTAL_SIZE = HEADER_SIZE + EXIT_SIZE + SLOT_COUNT * SLOT_SIZE


def start_ticks(pid: int) -> int:
    """Field 22 of /proc/PID/stat: with the pid, the identity of a process on its node."""
    with open(f"/proc/{pid}/stat", "rb") as stat:
        return int(stat.read().rpartition(b")")[2].split()[19])


def path_of(run_dir: str, pid: int, ticks: int) -> str:
    return os.path.join(run_dir, f"{pid}.{ticks}.record")


class Writer:
    """One process's record. Opens and maps the file; raises OSError or ValueError if it cannot."""

    def __init__(self, run_dir: str, pid: int, ticks: int) -> None:
        self.path = path_of(run_dir, pid, ticks)
        self.pid = pid
        self._beat = 0
        self._sequence = [0] * (SLOT_COUNT + 1)
        self._map = self._create(ticks)
        self._place = self._found()

    def is_in_place(self) -> bool:
        """Whether its file still stands in the run dir, or at least nobody can say otherwise."""
        try:
            return self._found() == self._place
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True

    def _found(self) -> tuple[int, int]:
        facts = os.lstat(self.path)
        return facts.st_dev, facts.st_ino

    def _create(self, ticks: int) -> mmap.mmap:
        """Write the header under a temporary name, so that no reader ever sees half a file."""
        draft = f"{self.path}.new"
        if os.path.lexists(draft):
            os.unlink(draft)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(draft, flags, 0o600)
        try:
            # A store to a hole of a mapped file on a full disk kills the process with SIGBUS:
            # take the space now, where a full disk is an OSError.
            os.posix_fallocate(handle, 0, TOTAL_SIZE)
            view = mmap.mmap(handle, TOTAL_SIZE)
            header = HEADER.pack(
                MAGIC,
                FORMAT_VERSION,
                HEADER_SIZE,
                TOTAL_SIZE,
                SLOT_SIZE,
                SLOT_COUNT,
                EXIT_SIZE,
                self.pid,
                ticks,
            )
            view[: len(header)] = header
            os.rename(draft, self.path)
        except BaseException:
            os.unlink(draft)
            raise
        finally:
            os.close(handle)
        return view

    def write(self, payload: bytes) -> None:
        """Store one payload of at most MAX_PAYLOAD bytes in the slot whose turn it is."""
        self._beat += 1
        index = self._beat % SLOT_COUNT
        offset = HEADER_SIZE + EXIT_SIZE + index * SLOT_SIZE
        self._store(index, offset, SLOT_SIZE, payload)

    def mark_exit(self, code: int | None, exception: str, at_ns: int) -> None:
        mark = {"code": code, "exception": exception[:200], "at_ns": at_ns}
        self._store(SLOT_COUNT, HEADER_SIZE, EXIT_SIZE, json.dumps(mark).encode())

    def remove(self) -> None:
        os.unlink(self.path)

    def _store(self, index: int, offset: int, size: int, payload: bytes) -> None:
        if len(payload) > size - SLOT.size:
            raise ValueError(f"{len(payload)} bytes do not fit into {size - SLOT.size}")
        sequence = self._sequence[index] + 1
        crc = zlib.crc32(payload)
        SLOT.pack_into(self._map, offset, sequence, self._beat, len(payload), crc)
        start = offset + SLOT.size
        self._map[start : start + len(payload)] = payload
        self._sequence[index] = sequence + 1
        SLOT.pack_into(self._map, offset, sequence + 1, self._beat, len(payload), crc)
