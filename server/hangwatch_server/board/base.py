"""The small interface behind which the live state of all jobs stands, ready for a shared one."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from hangwatch_agent import wire
from hangwatch_server.model import Link, Snapshot

LATE_S = 5.0
LOST_S = 20.0

# (node, pid, start ticks): the identity of a process while its node is up.
ProcessId = tuple[str, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobMeta:
    """What the board knows of a job beside its ranks; cheap to make."""

    id: str
    launch: str
    name: str
    script: str
    attempt: int
    world_size: int
    reporting: int  # ranks heard from while their agent is live
    nodes: tuple[str, ...]
    depth: wire.Depth  # the least among the reporting ranks
    step: int | None  # the lowest announced
    calls: int  # collective calls of all ranks that were seen to be made; never fewer
    moved_s: float | None  # monotonic time of the last call that any rank made
    heard_s: float  # monotonic time of the last heartbeat about this job
    processes_version: int  # rises when a rank's process changes


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeState:
    """An agent as the board knows it."""

    name: str
    hello: wire.Hello
    link: Link
    age_s: float  # since its last frame
    jobs: tuple[str, ...]
    ranks: int
    depth: wire.Depth
    dropped: int
    clock_ahead_s: float | None = None  # of ours when it connected; None where it did not say


@lru_cache(maxsize=4096)
def job_id(launch: str) -> str:
    """The id of the job with this launch key: stable across restarts and replicas."""
    return hashlib.sha256(launch.encode()).hexdigest()[:12]


class Board(Protocol):
    def hello(
        self, node: str, hello: wire.Hello, now_s: float, clock_ahead_s: float | None = None
    ) -> None:
        """An agent connected; its clock was so far ahead of ours, None where it did not say."""
        ...

    def disconnected(self, node: str, now_s: float) -> None:
        """An agent's connection closed."""
        ...

    def unknown_groups(self, heartbeat: wire.Heartbeat) -> list[wire.GroupInfo]:
        """The groups of a heartbeat that the board has not seen: those worth checking closely."""
        ...

    def apply(self, node: str, heartbeat: wire.Heartbeat, now_s: float) -> None:
        """Take in what a node says of its ranks."""
        ...

    def merge_entries(self, part: wire.CapturePart, now_s: float) -> None:
        """Let recorder entries of a capture stand in where the probe could not dump them."""
        ...

    def set_base(
        self, job: str, attempt: int, processes: Mapping[int, ProcessId], now_s: float
    ) -> None:
        """Continue the count of attempts from what an earlier server stored."""
        ...

    def align(
        self, job: str, attempt: int, processes: Mapping[int, ProcessId], now_s: float
    ) -> None:
        """Count attempts on from what the job's owner stored, where restarts were missed here."""
        ...

    def jobs(self) -> tuple[str, ...]:
        """Ids of all jobs on the board."""
        ...

    def snapshot(self, job: str, now_s: float) -> Snapshot | None:
        """Everything known of the job's present attempt; None for a job that is not here."""
        ...

    def job_meta(self, job: str, now_s: float) -> JobMeta | None: ...

    def processes(self, job: str) -> dict[int, ProcessId]:
        """The process of each rank of the present attempt."""
        ...

    def node_of(self, job: str, rank: int) -> str | None:
        """The node whose process is this rank of the present attempt."""
        ...

    def unheard(self, job: str) -> int:
        """How many ranks of the job are unknown because their agents' server is not heard."""
        ...

    def links(self, now_s: float) -> dict[str, Link]:
        """The link state of every node."""
        ...

    def nodes(self, now_s: float) -> tuple[NodeState, ...]: ...

    def forget(self, silent_s: float, now_s: float) -> tuple[str, ...]:
        """Drop jobs without a live process and nodes that were silent so long; returns the jobs."""
        ...
