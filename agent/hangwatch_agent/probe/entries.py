"""Recorder entries during a stall: one full dump, trimmed to the newest of each live group.

A full dump costs 50 ms of GIL when asked from Python, so it is asked through the process's own
worker server, which answers from a C++ thread, and only the newest entries are parsed (see `dump`).
Entries of groups that are no longer live are ignored.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from . import calls, counters, dump, groups, sites, tails, worker_server

PER_GROUP = 64  # what tells a call that was skipped some time ago; older ones travel compact
FIRST_AFTER_NS = 2_000_000_000
SECOND_AFTER_NS = 4_000_000_000
EVERY_NS = 10_000_000_000
SOURCES = (
    ("_dump_fr_trace_json", "fr_trace_json"),
    ("_dump_nccl_trace_json", "dump_nccl_trace_json"),
)
RING_SIZES = ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE")


class Pace:
    """When to dump: 2 s into a stall, 2 s later for the second sample, then every 10 s."""

    def __init__(self) -> None:
        self._stall_began_ns = 0
        self._dumps = 0
        self._last_ns = 0

    def is_due(self, moved_ns: int, now_ns: int) -> bool:
        if moved_ns != self._stall_began_ns:
            self._stall_began_ns = moved_ns
            self._dumps = 0
        stalled_ns = now_ns - moved_ns
        due = (
            stalled_ns >= FIRST_AFTER_NS
            if self._dumps == 0
            else stalled_ns >= SECOND_AFTER_NS
            if self._dumps == 1
            else now_ns - self._last_ns >= EVERY_NS
        )
        if due:
            self._dumps += 1
            self._last_ns = now_ns
        return due


class Entries:
    """Takes dumps and hands their newest entries to the groups."""

    def __init__(self, counts: counters.Counters, lacks: dict[str, str]) -> None:
        self._counters = counts
        self._lacks = lacks
        self.server: worker_server.WorkerServer | None = None

    def take(self, pairs: list[tuple[Any, groups.Group]], now_ns: int) -> None:
        for _, group in pairs:
            group.entries, group.tail, group.p2p = [], None, []
        if any(os.environ.get(name) == "0" for name in RING_SIZES):
            self._lacks["recorder"] = "the flight recorder is off (TORCH_FR_BUFFER_SIZE=0)"
        for function, handler in SOURCES:
            source = getattr(sys.modules.get(counters.BINDINGS), function, None)
            if source is not None:
                self._take_one(source, handler, pairs)
            elif function == "_dump_fr_trace_json":
                self._lacks["recorder"] = "this torch has no flight recorder in JSON"
        for process_group, group in pairs:
            group.dumped_ns = now_ns
            is_still = counters.raw_of(process_group) == group.raw
            group.dumped_counter = group.counter if is_still and not group.is_blind else -1
            if is_still:
                self._check_seq(group)

    def open_among(self, left: list[groups.Group], now_ns: int) -> list[groups.Group]:
        """Of gloo's groups that torch has forgotten, those with an open collective, and it."""
        function, handler = SOURCES[0]
        source = getattr(sys.modules.get(counters.BINDINGS), function, None)
        if source is None:
            return []
        for group in left:
            group.entries, group.tail = [], None
        self._take_one(source, handler, [(None, group) for group in left])
        found = [g for g in left if any(not entry["retired"] for entry in g.entries)]
        for group in found:
            group.seq = group.entries[-1]["seq"]
            group.dumped_ns, group.dumped_counter = now_ns, group.counter
        return found

    def _take_one(self, function: Any, handler: str, pairs: list[tuple[Any, groups.Group]]) -> None:
        answer = self.server.ask(handler) if self.server is not None else None
        if answer is None:
            answer = function(True, False)
        # Of a name that was made several times only the newest group is still live.
        is_nccl = handler.startswith("dump_nccl")
        by_name = {
            group.recorded_as: group
            for _, group in pairs
            if (group.counter or group.epoch == 1)
            and not (group.is_gloo if is_nccl else group.is_nccl)
        }
        found = dump.Dump(dump.newest_first(answer), by_name, PER_GROUP)
        for name, told in found.groups.items():
            if is_nccl and told.number is not None:
                self._counters.nccl_names[str(told.number)] = name
            self._keep(by_name[name], told)

    def _keep(self, group: groups.Group, told: dump.GroupDump) -> None:
        if told.counts_batches:
            group.is_blind = group.is_seq_refuted = True
            group.seq = None
            self._lacks["batches"] = (
                f"this torch counts batches of sends among the collectives of group {group.name}: "
                "its ranks cannot be compared"
            )
            return
        if told.collectives:
            sites.attach(told.collectives, group.sites)
            _attach_roots(told.collectives, group)
            group.entries, group.tail = tails.split(told.collectives)
        if told.p2p:
            group.has_p2p = True
            group.p2p = told.p2p

    def _check_seq(self, group: groups.Group) -> None:
        """A counted seq that disagrees with the recorder is never published again."""
        if not group.entries or group.seq is None or not group.is_gloo or group.entering:
            return
        newest = group.entries[-1]["seq"]
        if not group.seq - group.burned <= newest <= group.seq:
            group.is_seq_refuted = True
            group.seq = None
            self._lacks["seq"] = f"calls of group {group.name} passed by the probe: no live numbers"


def _attach_roots(entries: list[dict[str, Any]], group: groups.Group) -> None:
    """The recorder leaves the root out; the wrapped calls know it."""
    by_number = dict(list(group.roots))
    for entry in entries:
        if entry["op"] in calls.ROOTED and entry["seq"] in by_number:
            entry["root"] = by_number[entry["seq"]]
