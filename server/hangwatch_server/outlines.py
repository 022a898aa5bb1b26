"""Which stack each process of a rank stands at, as a short key: what a merged tree tells apart.

In a hang of thousands of ranks nearly all stand at the same few places. With the keys stored beside
the stacks, a tree needs one example of each in full instead of every rank's.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from hangwatch_agent import wire

Key = Hashable  # equal for equal roles and frames; stored ones are 16 bytes

_PROCESS = struct.Struct("<q16s")  # pid, key


@dataclass(frozen=True, slots=True)
class Outline:
    """A rank's processes that have a stack: their pids, and the keys of their main threads."""

    rank: int
    processes: tuple[tuple[int, Key], ...]


@dataclass(frozen=True, slots=True)
class Outlined:
    """Many ranks' stacks, one process in full for each key; for keys that cannot be read none."""

    outlines: Sequence[Outline] = ()
    examples: Mapping[Key, wire.ProcessStacks] = field(default_factory=dict)


def main_thread(process: wire.ProcessStacks) -> wire.Thread | None:
    """The thread whose OS id is the process's pid, else the one that py-spy calls the main one."""
    threads = process.threads
    if threads and threads[0].thread_id == process.pid:
        return threads[0]
    by_id = next((thread for thread in threads if thread.thread_id == process.pid), None)
    by_name = next((thread for thread in threads if thread.name == "MainThread"), None)
    return by_id or by_name or (threads[0] if len(threads) == 1 else None)


def of(rank: int, stacks: Iterable[wire.ProcessStacks]) -> Outline:
    """The outline to store; processes whose main thread shows no frame are left out."""
    threads = ((process, main_thread(process)) for process in stacks)
    return Outline(
        rank,
        tuple(
            (process.pid, _key(process.role, thread.frames))
            for process, thread in threads
            if thread is not None and thread.frames
        ),
    )


def pack(outline: Outline) -> bytes:
    """The processes of a stored outline, 24 bytes each."""
    return b"".join(_PROCESS.pack(pid, key) for pid, key in outline.processes)


def unpack(rank: int, packed: bytes) -> Outline:
    """What `pack` was given; struct.error for bytes that it has not made."""
    return Outline(rank, tuple(_PROCESS.iter_unpack(packed)))


def _key(role: str, frames: tuple[wire.Frame, ...]) -> bytes:
    stack = msgspec.msgpack.encode((role, frames))
    return hashlib.blake2b(stack, digest_size=16).digest()
