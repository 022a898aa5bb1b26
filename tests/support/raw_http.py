"""Bytes to a server and back, for requests that no client of good will would make."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

TIMEOUT_S = 30.0
MAX_ANSWER = 4 * 1024 * 1024


@contextlib.contextmanager
def connected(url: str) -> Iterator[socket.socket]:
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=TIMEOUT_S) as line:
        yield line


def exchange(url: str, request: bytes) -> bytes:
    """Send it, say that no more comes, and read until the server closes or rests for a second."""
    with connected(url) as line:
        with contextlib.suppress(ConnectionError):
            line.sendall(request)
        return received(line)


def received(line: socket.socket, rest_s: float = 1.0) -> bytes:
    """Everything until the end, or until nothing more comes for a while after something came."""
    data = b""
    end_s = time.monotonic() + TIMEOUT_S
    while len(data) < MAX_ANSWER and time.monotonic() < end_s:
        line.settimeout(rest_s if data else TIMEOUT_S)
        try:
            piece = line.recv(65536)
        except (TimeoutError, ConnectionError):
            break
        if not piece:
            break
        data += piece
    return data


def statuses(answer: bytes) -> list[int]:
    """Of each response in it, in order."""
    heads = answer.split(b"HTTP/1.1 ")[1:]
    return [int(head[:3]) for head in heads]
