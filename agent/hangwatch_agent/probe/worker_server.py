"""torch's own _WorkerServer on a unix socket: it answers from C++, without the GIL.

A silent probe with an answering socket means that the GIL is held; the node service asks it so. The
probe asks it for recorder entries, which then are prepared without stopping the trainer's threads.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import struct
import sys
from typing import Any

from . import counters

MAX_PATH = 107  # bytes of sun_path without its terminator (Linux)
MAX_ANSWER = 8 * 1024 * 1024  # 2,000 entries, as many as the recorder keeps, take about 1 MiB
TIMEOUT_S = 5.0
_CREDENTIALS = struct.Struct("3i")


class WorkerServer:
    """The socket of this process; `path` is empty when there is none, and `lacks` says why."""

    def __init__(self, path: str, lacks: dict[str, str]) -> None:
        self.path = ""
        self._lacks = lacks
        kind = getattr(sys.modules.get(counters.BINDINGS), "_WorkerServer", None)
        if kind is None:
            self._lacks["socket"] = (
                "this torch has no _WorkerServer: a held GIL cannot be recognised"
            )
        elif len(os.fsencode(path)) > MAX_PATH:
            self._lacks["socket"] = (
                f"the socket's path is longer than {MAX_PATH} bytes: choose a shorter run dir"
            )
        else:
            self._open(kind, path)

    def _open(self, kind: Any, path: str) -> None:
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            server = kind(path)
            # Its destructor joins a C++ thread that a forked child does not have: never run it.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(server))
            self.path = path
        except (OSError, RuntimeError, AttributeError) as error:
            self._lacks["socket"] = f"the worker server did not start: {str(error)[:120]}"

    def ask(self, handler: str) -> bytes | None:
        """The body of `POST /handler/<handler>`, None if it is refused or fails."""
        if not self.path:
            return None
        try:
            return _body(_exchange(self.path, handler))
        except (OSError, ValueError):
            return None

    def is_in_place(self) -> bool:
        """Whether its file is still there, if it ever was."""
        return not self.path or os.path.lexists(self.path)

    def remove(self) -> None:
        if self.path:
            with contextlib.suppress(OSError):
                os.unlink(self.path)


def _exchange(path: str, handler: str) -> bytes:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.settimeout(TIMEOUT_S)
        line.connect(path)
        _check_peer(line)
        request = (
            f"POST /handler/{handler} HTTP/1.1\r\nHost: probe\r\n"
            "Content-Length: 0\r\nConnection: close\r\n\r\n"
        )
        line.sendall(request.encode())
        parts: list[bytes] = []
        size = 0
        while size < MAX_ANSWER:
            part = line.recv(1 << 18)
            if not part:
                return b"".join(parts)
            parts.append(part)
            size += len(part)
    raise ValueError("the answer is too long")


def _check_peer(line: socket.socket) -> None:
    """What anybody else says would be read by the trainer, at the trainer's cost."""
    raw = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, uid, _ = _CREDENTIALS.unpack(raw)
    if (pid, uid) != (os.getpid(), os.geteuid()):
        raise ValueError(f"process {pid} of uid {uid} listens at this process's socket")


def _body(answer: bytes) -> bytes | None:
    head, found, body = answer.partition(b"\r\n\r\n")
    status = head.split(None, 2)[1:2]
    if not found or status != [b"200"]:
        return None
    if b"transfer-encoding: chunked" not in head.lower():
        return body
    parts: list[bytes] = []
    while body:
        length, _, rest = body.partition(b"\r\n")
        size = int(length, 16)
        if not size:
            break
        parts.append(rest[:size])
        body = rest[size + 2 :]
    return b"".join(parts)
