"""Recorder dumps as torch writes them, NCCL's and gloo's, built from few words; asserts nothing.

Shapes follow FlightRecorder::record, pointToPoint and endCoalescing of torch 2.13: keys sorted,
`duration_ms` only where it is known, no `entries` key when there are none.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

BASE_NS = 1_795_196_826_000_000_000


@dataclass
class Recorder:
    """One process's ring of `size` entries; `first_id` is what it had recorded before."""

    backend: str = "nccl"
    size: int = 2000
    first_id: int = 0
    is_timed: bool = False  # TORCH_NCCL_ENABLE_TIMING
    entries: list[dict[str, Any]] = field(default_factory=list)

    def collective(
        self, group: str, seq: int, op: str = "all_reduce", *, state: str = "completed", **more: Any
    ) -> None:
        self._record(group, f"{self.backend}:{op}", state, {"collective_seq_id": seq, **more})

    def member(self, group: str, seq: int, op: str, **more: Any) -> None:
        """An operation inside of a coalescing region: no events, so it stays scheduled."""
        self._record(group, f"{self.backend}:{op}", "member", {"collective_seq_id": seq, **more})

    def p2p(
        self, group: str, number: int, op: str, me: int, peer: int, *, state: str = "completed"
    ) -> None:
        arrow = "->" if op == "send" else "<-"
        name = f"{self.backend}:{op} {me}{arrow}{peer}"
        self._record(group, name, state, {"p2p_seq_id": number, "is_p2p": True})

    def batch_end(self, group: str, number: int, *, state: str = "completed", **more: Any) -> None:
        shape = {"input_sizes": [], "output_sizes": [], "input_dtypes": [], "output_dtypes": []}
        known = {"p2p_seq_id": number, "is_p2p": True, **shape, **more}
        self._record(group, f"{self.backend}:coalesced", state, known)

    def dump(self) -> bytes:
        whole: dict[str, Any] = {
            "comm_lib_version": "2.27.5" if self.backend == "nccl" else "",
            "nccl_comm_state": {},
            "pg_config": {},
            "pg_status": {},
            "version": "2.10",
        }
        if self.entries:
            whole["entries"] = self.entries[-self.size :]
        return json.dumps(whole, sort_keys=True, separators=(",", ":")).encode()

    def _record(self, group: str, name: str, state: str, more: dict[str, Any]) -> None:
        number = self.first_id + len(self.entries)
        is_gloo = self.backend == "gloo"
        at_ns = BASE_NS + 1_000_000 * number
        has_started = state == "started" or (state == "completed" and self.is_timed)
        entry = {
            "collective_seq_id": 0,
            "input_dtypes": ["Float"],
            "input_sizes": [[8]],
            "is_p2p": False,
            "op_id": number,
            "output_dtypes": ["Float"],
            "output_sizes": [[8]],
            "p2p_seq_id": 0,
            "pg_id": int(group) if group.isdigit() else 7,
            "process_group": [group, "default_pg" if group == "0" else f"mesh_{group}"],
            "profiling_name": name,
            "record_id": number,
            "retired": state == "completed",
            "state": "scheduled" if is_gloo or state == "member" else state,
            "thread_id": "139672554728320",
            "thread_name": "pt_main_thread",
            "time_created_ns": at_ns,
            "time_discovered_completed_ns": 0 if state != "completed" or is_gloo else at_ns + 900,
            "time_discovered_started_ns": at_ns + 400 if has_started and not is_gloo else 0,
            "timeout_ms": 600000,
            **more,
        }
        if state == "completed" and self.is_timed:
            entry["duration_ms"] = 0.31
        self.entries.append(entry)
