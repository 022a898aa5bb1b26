"""Talks to a rank's worker socket: is it alive, and what does its flight recorder hold.

torch's `_WorkerServer` answers from a C++ thread without the GIL. Before a byte is sent, the peer's
credentials must be those of the tracked process, so that a link or a foreign socket in the run dir
leads nowhere. Every answer is bounded in time and size.
"""

from __future__ import annotations

import asyncio
import socket
import stat
import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from hangwatch_agent import json_weight, ranks, wire
from hangwatch_agent.errors import SocketAbsentError, SocketError
from hangwatch_agent.payload import EntryPayload, Number
from hangwatch_agent.probe import dump
from hangwatch_agent.process import Identity

MAX_ANSWER = 64 * 1024 * 1024
MAX_ENTRIES = 20_000  # newest of one answer that are looked at
PING_TIMEOUT_S = 1.0
# NCCL and gloo keep separate recorders; a CPU build has only the second handler.
HANDLERS = ("dump_nccl_trace_json?includecollectives=true&onlyactive=false", "fr_trace_json")
_CREDENTIALS = struct.Struct("3i")


class RawEntry(msgspec.Struct):
    """The parts of an entry that are read (torch/csrc/distributed/c10d/FlightRecorder.hpp)."""

    process_group: list[str] = []
    pg_id: Number = -1
    collective_seq_id: Number = -1
    p2p_seq_id: Number = -1
    profiling_name: str = ""
    retired: bool = False
    is_p2p: bool = False
    state: str = ""
    record_id: Number = -1
    input_sizes: list[list[Number]] = []
    output_sizes: list[list[Number]] = []
    input_dtypes: list[str] = []
    output_dtypes: list[str] = []
    time_created_ns: Number = 0
    time_discovered_started_ns: Number | None = 0
    time_discovered_completed_ns: Number | None = 0
    timeout_ms: Number | None = None


class RawDump(msgspec.Struct):
    entries: list[RawEntry] = []  # torch leaves the key out when there are none


_decoder = msgspec.json.Decoder(RawDump)


def parse(data: bytes) -> dict[str, tuple[wire.Entry, ...]]:
    """Newest collectives per group name, oldest first; raise SocketError when it is no such dump.

    A group whose numbers cannot be compared across ranks is left out, see probe/dump.py.
    """
    if json_weight.is_too_heavy(data):
        raise SocketError(f"the recorder's answer of {len(data)} bytes holds too much to be read")
    try:
        raw = _decoder.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise SocketError(f"the recorder's answer cannot be read: {error}") from error
    return told(raw.entries[-MAX_ENTRIES:])


def told(entries: Sequence[RawEntry]) -> dict[str, tuple[wire.Entry, ...]]:
    """Newest collectives per group name, of entries in the order they were recorded."""
    listed: list[dict[str, Any]] = [msgspec.to_builtins(one) for one in reversed(entries)]
    names = {dump.group_name(one) for one in listed if one["process_group"]}
    found = dump.Dump(listed, names, wire.MAX_ENTRIES)
    return {
        name: tuple(ranks.entry(msgspec.convert(one, EntryPayload)) for one in told.collectives)
        for name, told in found.groups.items()
        if told.collectives and not told.counts_batches
    }


def match(
    by_name: Mapping[str, tuple[wire.Entry, ...]], groups: Iterable[wire.GroupInfo]
) -> tuple[wire.GroupEntries, ...]:
    """Entries by gid; of a name made several times only the newest epoch is still live."""
    newest: dict[str, wire.GroupInfo] = {}
    for group in groups:
        if group.name not in newest or newest[group.name].epoch < group.epoch:
            newest[group.name] = group
    return tuple(
        wire.GroupEntries(gid=group.gid, entries=by_name[name])
        for name, group in newest.items()
        if name in by_name
    )


async def ping(path: Path, identity: Identity, timeout_s: float = PING_TIMEOUT_S) -> bool | None:
    """True when the rank's worker socket answers in time; None when its file has been removed."""
    try:
        await _post(path, identity, "ping", timeout_s)
    except SocketAbsentError:
        return None
    except SocketError:
        return False
    return True


async def entries(
    path: Path, identity: Identity, groups: Iterable[wire.GroupInfo], timeout_s: float
) -> tuple[wire.GroupEntries, ...]:
    """The newest entries of both recorders; raise SocketError when neither answers."""
    by_name: dict[str, tuple[wire.Entry, ...]] = {}
    problem: SocketError | None = None
    has_answer = False
    for handler in HANDLERS:
        try:
            answer = await _post(path, identity, handler, timeout_s)
            # Reading what 20,000 entries say takes longer than a heartbeat may wait.
            by_name.update(await asyncio.to_thread(parse, answer))
            has_answer = True
        except SocketError as error:
            problem = error
    if not has_answer and problem is not None:
        raise problem
    return match(by_name, groups)


async def _post(path: Path, identity: Identity, handler: str, timeout_s: float) -> bytes:
    connection = _connected(path, identity)
    try:
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_unix_connection(sock=connection, limit=1 << 20)
            try:
                writer.write(
                    f"POST /handler/{handler} HTTP/1.1\r\nHost: hangwatch\r\n"
                    "Content-Length: 0\r\nConnection: close\r\n\r\n".encode()
                )
                await writer.drain()
                return await _answer(reader)
            finally:
                writer.close()
    except TimeoutError as error:
        raise SocketError(f"the worker socket did not answer within {timeout_s:g} s") from error
    except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError) as error:
        raise SocketError(f"the worker socket broke off: {error}") from error
    finally:
        connection.close()


def _connected(path: Path, identity: Identity) -> socket.socket:
    """A connection to the socket of exactly this process; on a unix socket that is instant."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise SocketError(f"{path.name} is not a socket")
        connection.setblocking(False)
        connection.connect(str(path))
        raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        pid, uid, _ = _CREDENTIALS.unpack(raw)
        if (pid, uid) != (identity.pid, identity.uid):
            raise SocketError(f"{path.name} belongs to process {pid} of uid {uid}")
    except OSError as error:
        connection.close()
        kind = SocketAbsentError if isinstance(error, FileNotFoundError) else SocketError
        raise kind(f"the worker socket cannot be reached: {error.strerror}") from error
    except SocketError:
        connection.close()
        raise
    return connection


async def _answer(reader: asyncio.StreamReader) -> bytes:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    status, *headers = head.split("\r\n")
    if " 200" not in status:
        raise SocketError(f"the worker socket answered {status[:80]}")
    length = None
    for header in headers:
        name, _, value = header.partition(":")
        if name.strip().lower() == "content-length":
            length = int(value)
    if length is not None:
        if length > MAX_ANSWER:
            raise SocketError(f"the answer of {length} bytes is over the limit")
        return await reader.readexactly(length)
    data = await reader.read(MAX_ANSWER + 1)
    return data
