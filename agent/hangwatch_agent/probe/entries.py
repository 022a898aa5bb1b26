"""Recorder entries during a stall: one full dump, trimmed to the newest few per live group.

A full dump costs 50 ms of GIL when asked from Python, so it is asked through the process's own
worker server, which answers from a C++ thread, and only the newest entries are parsed. Entries of
groups that are no longer live are ignored, and so are point-to-point entries, which carry no
collective number.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, Iterator

from . import counters, groups, worker_server

PER_GROUP = 16
MAX_LOOKED_AT = 2500  # the recorder's default ring holds 2,000
FIRST_AFTER_NS = 2_000_000_000
SECOND_AFTER_NS = 4_000_000_000
EVERY_NS = 10_000_000_000
# nlohmann::json sorts keys, so every entry begins like this; without it the whole text is parsed.
ENTRY_START = b'{"collective_seq_id":'
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
            group.entries = []
        if any(os.environ.get(name) == "0" for name in RING_SIZES):
            self._lacks["recorder"] = "the flight recorder is off (TORCH_FR_BUFFER_SIZE=0)"
        for function, handler in SOURCES:
            dump = getattr(sys.modules.get(counters.BINDINGS), function, None)
            if dump is not None:
                self._take_one(dump, handler, pairs)
            elif function == "_dump_fr_trace_json":
                self._lacks["recorder"] = "this torch has no flight recorder in JSON"
        for process_group, group in pairs:
            group.dumped_ns = now_ns
            is_still = counters.raw_of(process_group) == group.raw
            group.dumped_counter = group.counter if is_still else -1
            if is_still:
                self._check_seq(group)

    def _take_one(self, dump: Any, handler: str, pairs: list[tuple[Any, groups.Group]]) -> None:
        answer = self.server.ask(handler) if self.server is not None else None
        if answer is None:
            answer = dump(True, False)
        by_name: dict[str, list[groups.Group]] = {}
        for _, group in pairs:
            by_name.setdefault(group.name, []).append(group)
        wanted = len(pairs) * PER_GROUP
        for entry in newest_first(answer):
            names = entry.get("process_group") or [""]
            name = str(names[0])
            if handler.startswith("dump_nccl"):
                self._counters.nccl_names[str(entry.get("pg_id"))] = name
            if entry.get("is_p2p") or name not in by_name:
                continue
            group = by_name[name][-1]
            if len(group.entries) < PER_GROUP:
                group.entries.insert(0, trimmed(entry))
                wanted -= 1
            if wanted <= 0:
                break

    def _check_seq(self, group: groups.Group) -> None:
        """A counted seq that disagrees with the recorder is never published again."""
        if not group.entries or group.seq is None or not group.is_gloo or group.entering:
            return
        newest = group.entries[-1]["seq"]
        if not group.seq - group.burned <= newest <= group.seq:
            group.is_seq_refuted = True
            group.seq = None
            self._lacks["seq"] = f"calls of group {group.name} passed by the probe: no live numbers"


def newest_first(answer: bytes) -> Iterator[dict[str, Any]]:
    """The entries of a dump from the newest back; only what is taken from it is parsed."""
    end = answer.find(b"]", answer.rfind(ENTRY_START)) if ENTRY_START in answer else -1
    if end < 0:
        entries = json.loads(answer).get("entries", [])
        yield from list(reversed(entries))[:MAX_LOOKED_AT]
        return
    decoder = json.JSONDecoder()
    limit = len(answer)
    for _ in range(MAX_LOOKED_AT):
        start = answer.rfind(ENTRY_START, 0, limit)
        if start < 0:
            return
        chunk = answer[start:limit] if limit < len(answer) else answer[start : start + 65536]
        entry, _end = decoder.raw_decode(chunk.decode("utf-8", "replace"))
        yield entry
        limit = start


def trimmed(entry: dict[str, Any]) -> dict[str, Any]:
    state = str(entry.get("state", ""))
    name = str(entry.get("profiling_name", ""))
    is_started = state in ("started", "completed")
    return {
        "seq": int(entry.get("collective_seq_id", 0)),
        "op": name.partition(":")[2] or name,
        "retired": bool(entry.get("retired")) or state == "completed",
        # "scheduled" says nothing: gloo and untimed NCCL never leave it before completion.
        "started": True if is_started else None,
        "input_sizes": _sizes(entry.get("input_sizes")),
        "output_sizes": _sizes(entry.get("output_sizes")),
        "input_dtypes": _dtypes(entry.get("input_dtypes")),
        "output_dtypes": _dtypes(entry.get("output_dtypes")),
        "record_id": int(entry.get("record_id", -1)),
        "timeout_ms": entry.get("timeout_ms"),
    }


def _sizes(value: Any) -> list[list[int]]:
    """At most 8 tensors: an all_gather of 1,024 outputs would fill the record alone."""
    return [list(one)[:8] for one in list(value or [])[:8]]


def _dtypes(value: Any) -> list[str]:
    return [str(one) for one in list(value or [])[:8]]
