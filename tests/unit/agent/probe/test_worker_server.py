"""Asking the worker server of this very process, and nobody else's."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hangwatch_agent.probe import worker_server
from hangwatch_agent.probe.worker_server import WorkerServer

HEAD = b"HTTP/1.1 200 OK\r\n\r\n"
LISTENER = """
import socket, sys
line = socket.socket(socket.AF_UNIX)
line.bind(sys.argv[1])
line.listen()
print(flush=True)
sys.stdin.read()
"""


def serving(path: Path, answer: bytes) -> threading.Thread:
    """A stand-in for torch's thread, in this process as that is."""
    line = socket.socket(socket.AF_UNIX)
    line.bind(str(path))
    line.listen()

    def serve() -> None:
        with line, line.accept()[0] as peer:
            peer.recv(1000)
            try:
                peer.sendall(HEAD + answer)
            except OSError:
                return  # nobody wanted that much

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return thread


def asking(path: Path) -> WorkerServer:
    server = WorkerServer("", {})
    server.path = str(path)
    return server


def test_own_server_is_asked(tmp_path: Path) -> None:
    thread = serving(tmp_path / "own.sock", b"{}")

    assert asking(tmp_path / "own.sock").ask("fr_trace_json") == b"{}"
    thread.join(60)


def test_answer_that_would_fill_the_trainers_memory_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_server, "MAX_ANSWER", 1 << 20)
    thread = serving(tmp_path / "own.sock", b"[" * (2 << 20))

    assert asking(tmp_path / "own.sock").ask("fr_trace_json") is None
    thread.join(60)


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[Path]:
    """A socket on which another process listens."""
    path = tmp_path / "theirs.sock"
    command = [sys.executable, "-c", LISTENER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield path
        process.communicate()


def test_other_process_at_the_socket_is_not_heard(
    stranger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_server, "TIMEOUT_S", 60.0)  # what waits for it fails the test

    with pytest.raises(ValueError, match="listens at this process's socket"):
        worker_server._exchange(str(stranger), "fr_trace_json")

    assert asking(stranger).ask("fr_trace_json") is None
