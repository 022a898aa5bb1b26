"""The few numbers that diagnosis depends on; time limits for alarms belong to `detect`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnoseSettings:
    stable_after_s: float = 1.0  # a younger front may be ordinary work between two heartbeats
    hard_after_s: float = 2.0  # hard evidence must be true in samples 2 s apart
    settled_after_s: float = 5.0  # a shorter wait is everyday, unless something hard proves it
    no_progress_after_s: float = 10.0  # the floor of a suspicion
    idle_cpu_share: float = 0.05  # of a core; at or above it a main thread counts as working
    max_culprits: int = 64
    max_sinks: int = 50  # reverse reach is the one part that is not linear
    max_edges: int = 64


DEFAULT = DiagnoseSettings()
