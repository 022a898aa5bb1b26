"""A real redis-server for tests, on a unix socket in a folder of its own, ended by its pid."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis

START_TIMEOUT_S = 30.0


@dataclass
class RedisServer:
    """One server process at a time on the same socket."""

    folder: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"unix://{self.folder}/redis.sock"

    def start(self) -> None:
        command = shutil.which("redis-server")
        if command is None:
            pytest.skip("tests/support/packages.sh installs redis-server")
        options = {
            "port": "0",
            "unixsocket": f"{self.folder}/redis.sock",
            "dir": str(self.folder),
            "save": "",
            "appendonly": "no",
            "enable-debug-command": "local",
        }
        arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
        self.process = subprocess.Popen(
            [command, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._wait_until_it_answers()

    def kill(self) -> None:
        """As a crash would: whatever it held is gone."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGCONT)

    def command(self, *words: str) -> object:
        with redis.Redis.from_url(self.url) as client:
            return client.execute_command(*words)

    def _end(self, number: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(START_TIMEOUT_S)
            self.process = None

    def _wait_until_it_answers(self) -> None:
        end_s = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                self.command("PING")
            except (redis.RedisError, OSError):
                assert time.monotonic() < end_s, "redis-server did not start"
                time.sleep(0.02)
            else:
                return


@contextmanager
def server() -> Iterator[RedisServer]:
    folder = Path(tempfile.mkdtemp(prefix="hangwatch-redis-"))
    running = RedisServer(folder)
    try:
        running.start()
        yield running
    finally:
        running.kill()
        shutil.rmtree(folder, ignore_errors=True)
