"""Reads a recorder's JSON dump: what each group called, as gloo's and NCCL's recorders write it.

Three habits of NCCL's recorder are undone here (torch/csrc/distributed/c10d, 2.5 to 2.13). The
operations of a coalescing region are entries of their own that stay "scheduled" for ever; only the
closing "coalesced" entry with the same number tells their state. Sends and receives are told apart
by `is_p2p` and carry a number of their own. Entries of a destroyed group stay in the ring, and a
later group may have its name: `pg_id` tells them apart, within one process.
"""

from __future__ import annotations

import json
import re
from typing import Any, Iterable, Iterator

MAX_LOOKED_AT = 2500  # the recorder's default ring holds 2,000
MAX_TENSORS = 8  # an all_gather of 1,024 outputs would fill the record alone
MAX_P2P = 64  # newest sends and receives that are kept per group
STARTED = ("started", "completed")  # states of a call whose kernel runs, or has run
COALESCED = "coalesced"
MIXED = "coalesced_mixed"  # different operations in one region
# nlohmann::json sorts keys, so every entry begins like this; without it the whole text is parsed.
ENTRY_START = b'{"collective_seq_id":'
_P2P = re.compile(
    r"(send|recv) (\d{1,9})(?:->|<-)(\d{1,9})\b"
)  # "nccl:recv 0<-1": ranks of the group


class GroupDump:
    """What one dump says of one group; lists are newest first until `finish`."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.collectives: list[dict[str, Any]] = []
        self.p2p: list[dict[str, Any]] = []
        self.counts_batches = False  # batches of P2P use up collective numbers (torch before 2.6)
        self.number: Any = None  # pg_id
        self._bundle = -1  # number of the newest call that was put together from several entries
        self._closing: dict[str, Any] | None = None

    @property
    def is_full(self) -> bool:
        return len(self.collectives) > self.limit

    def add(self, raw: dict[str, Any]) -> None:
        """Take the next older entry."""
        number = raw.get("pg_id")
        if self.number is None:
            self.number = number
        if number != self.number:
            return  # of an earlier group with this name
        if raw.get("is_p2p"):
            self._add_p2p(raw)
        else:
            self._add_collective(trimmed(raw))

    def finish(self) -> None:
        """Oldest first, and nothing that the ring may have cut in half."""
        del self.collectives[self.limit :]
        oldest = self.collectives[-1] if self.collectives else None
        if oldest is not None and oldest["seq"] == self._bundle and oldest["record_id"] > 0:
            self.collectives.pop()
        self.collectives.reverse()
        self.p2p.reverse()

    def _add_collective(self, entry: dict[str, Any]) -> None:
        newer = self.collectives[-1] if self.collectives else None
        if newer is None or newer["seq"] != entry["seq"]:
            self.collectives.append(entry)
            return
        for side in ("input_sizes", "output_sizes", "input_dtypes", "output_dtypes"):
            newer[side] = (entry[side] + newer[side])[:MAX_TENSORS]
        if newer["op"] == COALESCED:
            newer["op"] = entry["op"]
        elif newer["op"] != entry["op"]:
            newer["op"] = MIXED
        newer["record_id"] = entry["record_id"]
        self._bundle = entry["seq"]

    def _add_p2p(self, raw: dict[str, Any]) -> None:
        name = bare_name(raw)
        if name == COALESCED:
            self._closing = raw
            return
        found = _P2P.search(name)
        if found is None or len(self.p2p) >= MAX_P2P:
            return
        closing = self._closing
        if closing is None or closing.get("p2p_seq_id") != raw.get("p2p_seq_id"):
            closing = self._closing_among_collectives(raw)
        self.p2p.append(
            {
                "op": found.group(1),
                "peer": int(found.group(3)),
                "retired": is_over(raw if closing is None else closing),
                "record_id": int(raw.get("record_id", -1)),
            }
        )

    def _closing_among_collectives(self, raw: dict[str, Any]) -> dict[str, Any] | None:
        """The end of a batch as torch before 2.6 records it: under a collective's number."""
        newer = self.collectives[-1] if self.collectives else None
        if newer is None or newer["op"] != COALESCED or newer["input_sizes"]:
            return None
        if newer["seq"] != int(raw.get("collective_seq_id", -1)):
            return None
        self.counts_batches = True
        self.collectives.pop()
        self._closing = {"p2p_seq_id": raw.get("p2p_seq_id"), "retired": newer["retired"]}
        return self._closing


class Dump:
    """What a recorder says of the named groups."""

    def __init__(self, entries: Iterable[dict[str, Any]], names: Iterable[str], limit: int) -> None:
        """Keep the newest `limit` collectives of each group; `entries` come newest first."""
        self.groups = {name: GroupDump(limit) for name in names}
        self.has_start_events = False
        wanted = len(self.groups)
        for raw in entries:
            self.has_start_events = self.has_start_events or _tells_start(raw)
            group = self.groups.get(group_name(raw))
            if group is None or group.is_full:
                continue
            group.add(raw)
            wanted -= group.is_full
            if not wanted:
                break
        for group in self.groups.values():
            group.finish()
            if self.has_start_events:
                _mark_queued(group.collectives)


def _mark_queued(entries: list[dict[str, Any]]) -> None:
    for entry in entries:
        if entry["started"] is None and not entry["retired"]:
            entry["started"] = False


def _tells_start(raw: dict[str, Any]) -> bool:
    """Whether this recorder knows when kernels start: only then does "scheduled" mean queued.

    A torch that fills in the start of what it finds completed gives both the same time. One odd
    entry must not turn every other one into a queued call, so its state and times have to agree.
    """
    if raw.get("state") not in STARTED:
        return False
    started = int(raw.get("time_discovered_started_ns") or 0)
    completed = int(raw.get("time_discovered_completed_ns") or 0)
    return 0 < int(raw.get("time_created_ns") or 0) <= started and (
        raw.get("state") == "started" or started < completed
    )


def group_name(raw: dict[str, Any]) -> str:
    return str((raw.get("process_group") or [""])[0])


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
        entry, _end = decoder.raw_decode(answer[start:limit].decode("utf-8", "replace"))
        yield entry
        limit = start


def bare_name(raw: dict[str, Any]) -> str:
    """The operation without its backend: "all_reduce" of "nccl:all_reduce"."""
    name = str(raw.get("profiling_name", ""))
    return name.partition(":")[2] or name


def is_over(raw: dict[str, Any]) -> bool:
    return bool(raw.get("retired")) or raw.get("state") == "completed"


def trimmed(raw: dict[str, Any]) -> dict[str, Any]:
    """One collective's entry with the keys of hangwatch_agent.payload."""
    return {
        "seq": int(raw.get("collective_seq_id", 0)),
        "op": bare_name(raw),
        "retired": is_over(raw),
        # "scheduled" says nothing by itself: gloo and untimed NCCL never leave it before the end.
        "started": True if raw.get("state") in STARTED else None,
        "input_sizes": _sizes(raw.get("input_sizes")),
        "output_sizes": _sizes(raw.get("output_sizes")),
        "input_dtypes": _dtypes(raw.get("input_dtypes")),
        "output_dtypes": _dtypes(raw.get("output_dtypes")),
        "record_id": int(raw.get("record_id", -1)),
        "timeout_ms": raw.get("timeout_ms"),
    }


def _sizes(value: Any) -> list[list[int]]:
    return [list(one)[:8] for one in list(value or [])[:MAX_TENSORS]]


def _dtypes(value: Any) -> list[str]:
    return [str(one) for one in list(value or [])[:MAX_TENSORS]]
