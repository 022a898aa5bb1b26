"""From the bytes of a dump file to recorder entries, whichever way torch wrote them.

Only the parts that are read are looked at, each within its limit: what a dump holds beside them may
be as large and as knotted as it likes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from hangwatch_agent import json_weight, ranges, ranks, recorder, wire
from hangwatch_agent.dumps import pickles
from hangwatch_agent.errors import DumpError
from hangwatch_agent.probe import dump
from hangwatch_agent.recorder import RawEntry

# One list of a pickle can be the sizes of every entry, and each gets a copy of it.
MAX_ENTRIES = 20_000
MAX_TEXT = 200
MAX_RANKS_TEXT = 1_000_000
MAX_MEMBERS = 1_000_000  # of all groups of one dump; its rank is in each of them
_LARGEST = 2**63


@dataclass(frozen=True)
class Dump:
    """Newest collectives per group name, oldest first; and the groups' ranks as range text."""

    entries: dict[str, tuple[wire.Entry, ...]]
    ranks: dict[str, str]
    backends: dict[str, str] = field(default_factory=dict)  # per group name, "nccl" or "gloo"
    newest_ns: int = 0  # wall time of its newest call, 0 where it tells none


def read(data: bytes) -> Dump:
    """Raise DumpError when it is no dump of a recorder."""
    found = _from_json(data) if data[:1] == b"{" else pickles.load(data)
    if not isinstance(found, dict):
        raise DumpError("the dump holds no record")
    entries = found.get("entries", [])
    if not isinstance(entries, list):
        raise DumpError("the dump holds no list of entries")
    raw = [_entry(item) for item in entries[-MAX_ENTRIES:]]
    return Dump(
        recorder.told(raw),
        _ranks(found.get("pg_config")),
        backends=_backends(raw),
        newest_ns=max((entry.time_created_ns for entry in raw), default=0),
    )


def _from_json(data: bytes) -> object:
    if len(data) > pickles.MAX_BYTES:
        raise DumpError(f"the dump of {len(data)} bytes is over the limit of {pickles.MAX_BYTES}")
    if json_weight.is_too_heavy(data):
        raise DumpError(f"the dump of {len(data)} bytes holds too much to be read")
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise DumpError(f"the dump cannot be read: {error}") from error


def _backends(entries: Sequence[RawEntry]) -> dict[str, str]:
    """Profiling names begin with it: "nccl:all_reduce"."""
    found: dict[str, str] = {}
    for entry in entries:
        if entry.process_group and entry.process_group[0] not in found:
            found[entry.process_group[0]] = entry.profiling_name.partition(":")[0]
    return found


def _ranks(config: object) -> dict[str, str]:
    """Members per group name, where torch wrote them: "[0, 1, 2]"; gloo writes none.

    A list that names more ranks than a job can have, or than are left of MAX_MEMBERS, is not read.
    """
    found: dict[str, str] = {}
    left = MAX_MEMBERS
    groups = config if isinstance(config, dict) else {}
    for name, facts in list(groups.items())[: wire.MAX_GROUPS_PER_RANK]:
        listed = facts.get("ranks") if isinstance(facts, dict) else None
        if isinstance(name, str) and isinstance(listed, str) and len(listed) <= MAX_RANKS_TEXT:
            spec = listed.strip("[]").replace(" ", "")
            size = ranges.size(spec)
            if size > min(left, wire.MAX_WORLD_SIZE):
                continue
            left -= size
            text = ranges.sorted_text(spec)
            if text:
                found[name] = text
    return found


def _entry(item: object) -> RawEntry:
    values: dict[str | int, object] = item if isinstance(item, dict) else {}
    return RawEntry(
        process_group=_texts(values.get("process_group"), 2),
        pg_id=_number(values.get("pg_id"), -1),
        collective_seq_id=_number(values.get("collective_seq_id"), -1),
        p2p_seq_id=_number(values.get("p2p_seq_id"), -1),
        profiling_name=_text(values.get("profiling_name")),
        retired=values.get("retired") is True,
        is_p2p=values.get("is_p2p") is True,
        state=_text(values.get("state")),
        record_id=_number(values.get("record_id"), -1),
        input_sizes=_sizes(values.get("input_sizes")),
        output_sizes=_sizes(values.get("output_sizes")),
        input_dtypes=_texts(values.get("input_dtypes"), dump.MAX_TENSORS),
        output_dtypes=_texts(values.get("output_dtypes"), dump.MAX_TENSORS),
        time_created_ns=_number(values.get("time_created_ns"), 0),
        time_discovered_started_ns=_number(values.get("time_discovered_started_ns"), 0),
        time_discovered_completed_ns=_number(values.get("time_discovered_completed_ns"), 0),
        timeout_ms=_number(values.get("timeout_ms"), 0) or None,
    )


def _items(value: object, limit: int) -> Sequence[object]:
    return value[:limit] if isinstance(value, list | tuple) else ()


def _sizes(value: object) -> list[list[int]]:
    return [
        [_number(number, -1) for number in _items(size, ranks.MAX_DIMENSIONS)]
        for size in _items(value, dump.MAX_TENSORS)
    ]


def _texts(value: object, limit: int) -> list[str]:
    return [_text(item) for item in _items(value, limit)]


def _text(value: object) -> str:
    return value[:MAX_TEXT] if isinstance(value, str) else ""


def _number(value: object, default: int) -> int:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and -_LARGEST <= value < _LARGEST else default  # type: ignore
