"""This process's record and socket in the run dir: made, and made anew when somebody removes them.

A session's end clears XDG_RUNTIME_DIR, and what tidies /tmp takes a mapped file for an old one: its
time of change stands still.
"""

from __future__ import annotations

import contextlib
import os
import sys

from . import folder, record, worker_server

RENEW_EVERY_NS = 10_000_000_000
MAX_RENEWED = 8  # each socket has a thread of torch's that cannot be ended


class Files:
    """The two files of one process; raises OSError or ValueError if there can be no record."""

    def __init__(self, run_dir: str, lacks: dict[str, str]) -> None:
        self._run_dir = run_dir
        self._lacks = lacks
        self._renewed = 0
        self._due_ns = 0
        self.writer = self._make_record()
        self.server = self._make_socket()

    def renew(self, now_ns: int) -> bool:
        """Make anew what has been removed; True when something was. Three microseconds if not."""
        has_record, has_socket = self.writer.is_in_place(), self.server.is_in_place()
        if (has_record and has_socket) or now_ns < self._due_ns or self._renewed >= MAX_RENEWED:
            return False
        self._due_ns = now_ns + RENEW_EVERY_NS
        try:
            if not has_record:
                self.writer = self._make_record()
            if not has_socket:
                self.server = self._make_socket()
        except (OSError, ValueError):
            return False  # the folder is gone or full: tried again later
        self._renewed += 1
        return True

    def _make_record(self) -> record.Writer:
        os.makedirs(self._run_dir, mode=0o700, exist_ok=True)
        problem = folder.problem(self._run_dir)
        if problem:
            raise ValueError(f"it {problem}")
        pid = os.getpid()
        return record.Writer(self._run_dir, pid, record.start_ticks(pid))

    def _make_socket(self) -> worker_server.WorkerServer:
        path = f"{self.writer.path[: -len('.record')]}.sock"
        return worker_server.WorkerServer(path, self._lacks)


def say_why_not(run_dir: str, error: Exception) -> None:
    """One line in the job's log: without a record there is no other place to say it."""
    why = getattr(error, "strerror", None) or str(error)
    with contextlib.suppress(Exception):  # boundary to the trainer: its log may be closed
        sys.stderr.write(
            f"hangwatch: process {os.getpid()} is not watched, as {run_dir} cannot hold its "
            f"record: {why}; set HANGWATCH_RUN_DIR to a folder of your own\n"
        )
