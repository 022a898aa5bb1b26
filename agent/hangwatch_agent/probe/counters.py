"""The cheap counters of a group, read once per beat: no recorder entries, microseconds each.

On gloo the raw sequence number also counts sends, receives and the messages inside
monitored_barrier, so it shows progress but is not comparable across ranks. The wrapped calls
measure by how much each of them moved it; raw + offset is then the recorder's collective_seq_id
(measured on torch 2.13: equal after collectives, P2P, batches and monitored_barrier).
"""

from __future__ import annotations

import json
import sys
from typing import Any

from . import groups

BINDINGS = "torch._C._distributed_c10d"


class Counters:
    """Reads the counters of live groups; `lacks` gains a sentence per source that is missing."""

    def __init__(self, lacks: dict[str, str]) -> None:
        self._lacks = lacks
        # The recorder numbers groups by creation in this process; dumps teach which is which.
        self.nccl_names: dict[str, str] = {}

    def read(self, pairs: list[tuple[Any, groups.Group]], now_ns: int) -> None:
        has_nccl = False
        for process_group, group in pairs:
            has_nccl = has_nccl or "nccl" in group.backend
            raw = raw_of(process_group)
            if raw is None:
                self._lacks["counter"] = (
                    "this torch gives no sequence number of a group: progress is unknown"
                )
                continue
            _advance(group, raw, now_ns)
            group.seq = _comparable(process_group, group)
        if has_nccl:
            self._read_nccl(pairs)

    def _read_nccl(self, pairs: list[tuple[Any, groups.Group]]) -> None:
        dump = getattr(sys.modules.get(BINDINGS), "_dump_nccl_trace_json", None)
        if dump is None:
            self._lacks["nccl_recorder"] = "this torch has no NCCL flight recorder in JSON"
            return
        status = json.loads(dump(False, True)).get("pg_status", {})
        by_name = {group.recorded_as: group for _, group in pairs if "nccl" in group.backend}
        for number, values in status.items():
            group = by_name.get(self.nccl_names.get(str(number), ""))
            if group is not None:
                group.finished = _of_collectives(group, values.get("last_completed_collective"))
                group.started = _of_collectives(group, values.get("last_started_collective"))


def raw_of(process_group: Any) -> int | None:
    try:
        return int(process_group._get_sequence_number_for_group())
    except (AttributeError, RuntimeError):
        return None


def _advance(group: groups.Group, raw: int, now_ns: int) -> None:
    group.raw = raw
    counter = raw + group.uncounted
    if counter != group.counter or not group.moved_ns:
        group.counter = counter
        group.moved_ns = now_ns


def _comparable(process_group: Any, group: groups.Group) -> int | None:
    """collective_seq_id where it is proven, else None; the old value while a call is on its way."""
    if group.is_nccl:
        return None if group.is_seq_refuted else group.raw
    if not group.is_gloo or not group.is_watched or group.is_seq_refuted:
        return None
    if group.entering:
        return group.entry_seq
    before = group.offset
    raw = raw_of(process_group)
    if raw is None or group.entering or before != group.offset:
        return group.seq
    return raw + before


def _of_collectives(group: groups.Group, value: Any) -> int | None:
    """A status number, where it surely counts collectives.

    NCCL's recorder writes the number of the last call there, whichever it was: after a send it is
    the send's, from a count of its own. It may be smaller or larger than any collective's.
    """
    number = int(value) if value is not None else -1
    has_p2p = group.has_p2p or group.uncounted > 0
    return number if 0 <= number <= group.raw and not has_p2p else None
