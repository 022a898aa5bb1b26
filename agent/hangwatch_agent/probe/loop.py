"""The probe's thread: one beat per second into the record, two while this rank is stalled.

The record is made only once this process shows itself to be a rank: torch.distributed is
initialised or is being initialised. Launchers and loader workers import torch.distributed too and
never get there.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any

from . import (
    arrival,
    calls,
    counters,
    entries,
    exits,
    files,
    groups,
    inits,
    leaving,
    marks,
    report,
    sites,
)

INTERVAL_S = 1.0
STALLED_INTERVAL_S = 0.5
STALLED_AFTER_NS = 2_000_000_000
LEAVE_WAIT_S = 0.5  # a beat takes milliseconds; the exit of the trainer waits no longer
STALE_ENTRIES_NS = 10_000_000_000  # entries of a stall that is over are dropped after this


class Loop:
    """Everything the probe holds in one process. Nothing in it raises into the trainer."""

    def __init__(self, run_dir: str, version: str) -> None:
        self._run_dir = run_dir
        self._version = version
        self._lacks: dict[str, str] = {}
        self._calls = calls.Calls(groups.Table(), self._lacks)
        self._sites: sites.Sites | None = None
        if sites.is_wanted():
            self._sites = sites.Sites(lambda: self._calls.table)
            self._calls.place = self._sites.place
        self._exits = exits.Exits(self._mark_exit, self._leave)
        self._arrival = arrival.Arrival(self._arrive)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._reset()

    def _reset(self) -> None:
        """The state of one process; a forked child gets a fresh one."""
        self._pid = os.getpid()
        self._turn = threading.Lock()  # held during a beat, whichever thread makes it
        self._beat = 0
        self._due_s = INTERVAL_S
        self._files: files.Files | None = None
        self._has_initialised = False
        self._has_failed = False
        self._is_leaving = False
        self._rank, self._world_size = -1, 0
        self._environment = report.environment()
        self._inits = inits.Inits()
        self._counters = counters.Counters(self._lacks)
        self._entries = entries.Entries(self._counters, self._lacks)
        self._pace = entries.Pace()
        self._leaving = leaving.Leaving(self._entries)

    def start(self) -> None:
        self._wrap()
        self._exits.install()
        os.register_at_fork(after_in_child=self._in_child)
        self._spawn()

    def suspend(self) -> None:
        """Take the wrappers off and end the thread, for measuring what the probe costs."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self._arrival.remove()
        self._calls.remove()
        if self._sites is not None:
            self._sites.remove()

    def resume(self) -> None:
        self._wrap()
        self._spawn()

    def _wrap(self) -> None:
        if self._sites is not None:
            self._sites.install()  # innermost: `calls` looks at its direct caller
        self._calls.install()
        self._arrival.install()

    def _spawn(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hangwatch-probe", daemon=True)
        self._thread.start()

    def _in_child(self) -> None:
        """A rank's forked child (a loader worker) is no rank; a launcher's may become one."""
        try:
            # Inherited state of torch tells a rank even before its first beat.
            was_rank = self._files is not None or self._read_rank()
            self._lacks.clear()
            self._calls.forget()
            self._reset()
            if was_rank:
                self._has_failed = True
            else:
                self._spawn()
        except Exception:  # boundary to the trainer: this child goes on without a probe
            self._has_failed = True

    def _run(self) -> None:
        stop = self._stop
        while not self._is_over(stop):
            if self._has_failed:
                return
            with self._turn:
                is_stalled = self._guarded_tick()
            self._due_s = STALLED_INTERVAL_S if is_stalled else INTERVAL_S

    def _guarded_tick(self, *, arrives: bool = False) -> bool:
        try:
            return self._tick(arrives=arrives)
        except Exception as error:  # boundary to the trainer: the next beat tries again
            self._lacks["beat"] = f"a beat failed: {type(error).__name__}: {str(error)[:120]}"
            return False

    def _arrive(self) -> None:
        """The first beat of an initialised rank, from the thread that initialises it."""
        if not self._has_failed and self._turn.acquire(timeout=LEAVE_WAIT_S):
            try:
                self._guarded_tick(arrives=True)
            finally:
                self._turn.release()

    def _is_over(self, stop: threading.Event) -> bool:
        """Wait until the next beat is due; a suspended wait is taken up where it was left."""
        began = time.monotonic()
        is_over = stop.wait(self._due_s)
        self._due_s = max(0.0, self._due_s - (time.monotonic() - began))
        return is_over

    def _tick(self, *, arrives: bool = False) -> bool:
        now_ns = time.monotonic_ns()
        self._exits.reconsider(now_ns)
        # A rank that arrives still stands in init_process_group, but waits for nobody any more.
        waits = [] if arrives else self._inits.read()
        is_initialised = self._read_rank()
        if self._files is None:
            if not waits and not is_initialised:
                return False
            self._open()
        elif not self._is_leaving and self._files.renew(now_ns):
            self._entries.server = self._files.server
        pairs = self._calls.table.live() if is_initialised else []
        self._counters.read(pairs, now_ns)
        is_stalled = self._look_closer(pairs, now_ns)
        left = self._left_open(pairs, now_ns, is_initialised=is_initialised)
        self._write([*(group for _, group in pairs), *left], waits, is_initialised or bool(left))
        return is_stalled or bool(waits or left)

    def _left_open(
        self, pairs: list[tuple[Any, groups.Group]], now_ns: int, *, is_initialised: bool
    ) -> list[groups.Group]:
        """Groups that torch has dropped and that cannot end; with one a rank has not left yet."""
        if is_initialised:
            self._leaving.remember(pairs, now_ns)
            return []
        return self._leaving.pending(now_ns)

    def _read_rank(self) -> bool:
        module = sys.modules.get(groups.C10D)
        if module is None or not module.is_initialized():
            return False
        try:
            self._rank, self._world_size = int(module.get_rank()), int(module.get_world_size())
        except (RuntimeError, ValueError):
            return False  # destroyed between the two questions
        self._has_initialised = True
        return True

    def _open(self) -> None:
        """Make the record and its socket; without a record there is nothing to say, so give up."""
        try:
            self._files = files.Files(self._run_dir, self._lacks)
        except (OSError, ValueError) as error:
            self._has_failed = True
            files.say_why_not(self._run_dir, error)
            raise
        self._entries.server = self._files.server

    def _look_closer(self, pairs: list[tuple[Any, groups.Group]], now_ns: int) -> bool:
        if not pairs:
            return False
        moved_ns = max(group.moved_ns for _, group in pairs)
        if self._pace.is_due(moved_ns, now_ns):
            self._entries.take(pairs, time.monotonic_ns())
        for _, group in pairs:
            is_stale = group.dumped_counter != group.counter
            if is_stale and now_ns - group.dumped_ns > STALE_ENTRIES_NS:
                group.entries, group.tail, group.p2p = [], None, []
        return now_ns - moved_ns >= STALLED_AFTER_NS

    def _write(
        self, shown: list[groups.Group], waits: list[dict[str, Any]], is_initialised: bool
    ) -> None:
        if self._files is None or self._files.writer.pid != os.getpid():
            return
        self._beat += 1
        in_flight, recorded = self._calls.in_flight(), self._calls.recorded()
        payload = {
            "beat": self._beat,
            "at_ns": time.monotonic_ns(),
            **self._identity(is_initialised),
            **marks.read(),
            "groups": [report.of_group(group) for group in shown],
            "calls": [*(calls.payload(call) for call in in_flight), *recorded],
            "p2p": self._calls.counts(in_flight, recorded),
            "waits": waits,
            "socket": self._files.server.path,
            "lacks": sorted(self._lacks.values()),
        }
        self._files.writer.write(report.encoded(payload))

    def _identity(self, is_initialised: bool) -> dict[str, Any]:
        torch = sys.modules.get("torch")
        certain = self._has_initialised
        return {
            "pid": self._pid,
            "rank": self._rank if certain else report.from_environment("RANK", -1),
            "world_size": self._world_size if certain else report.from_environment("WORLD_SIZE", 0),
            "local_rank": report.from_environment("LOCAL_RANK", -1),
            "certain": certain,
            "initialised": self._has_initialised,
            "destroyed": self._has_initialised and not is_initialised,
            "groups_begun": groups.begun(),
            "shutting_down": self._is_leaving or not threading.main_thread().is_alive(),
            "script": report.script(),
            "torch": str(getattr(torch, "__version__", "")),
            "probe": self._version,
            "environment": self._environment,
        }

    def _mark_exit(self, code: int | None, exception: str) -> None:
        held = self._files
        if held is not None and held.writer.pid == os.getpid():
            held.writer.mark_exit(code, exception, time.monotonic_ns())

    def _leave(self) -> None:
        """The last beat, from the main thread, at the end of the interpreter."""
        self._is_leaving = True
        self._stop.set()
        if self._thread is not None:
            self._thread.join(LEAVE_WAIT_S)
        held = self._files
        if held is None or held.writer.pid != os.getpid():
            return
        if self._turn.acquire(timeout=LEAVE_WAIT_S):
            self._tick()  # an error ends in Exits; nobody needs the turn any more
        held.server.remove()
