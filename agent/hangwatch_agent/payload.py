"""What the probe writes into a record, as the node service reads it (JSON, see probe/record.py).

The probe builds plain dicts with these keys, since it may run on an older Python without msgspec.
Every `*_ns` is CLOCK_MONOTONIC of the node. Unknown keys are ignored, so either side may be newer.
"""

from __future__ import annotations

import msgspec


class EntryPayload(msgspec.Struct, frozen=True, kw_only=True):
    """One recorder entry, trimmed to what diagnosis needs."""

    seq: int  # collective_seq_id
    op: str
    retired: bool
    started: bool | None = None
    input_sizes: list[list[int]] = []
    output_sizes: list[list[int]] = []
    input_dtypes: list[str] = []
    output_dtypes: list[str] = []
    record_id: int = -1
    timeout_ms: int | None = None


class GroupPayload(msgspec.Struct, frozen=True, kw_only=True):
    """One live process group of this rank, from torch.distributed's own tables and the counters."""

    name: str
    description: str = ""
    backend: str = ""
    ranks: str = ""  # global ranks in group order, as "0,1,2" or "0-3"
    epoch: int = 1
    counter: int = 0  # moves with every call; never compared across ranks
    moved_ns: int = 0  # when `counter` last moved
    seq: int | None = None  # comparable collective_seq_id where it is known without a dump
    finished: int | None = None  # NCCL only
    started: int | None = None  # NCCL only, with start events
    entries: list[EntryPayload] = []  # newest last; from the dump at `dumped_ns`
    dumped_ns: int = 0  # 0: never
    dumped_counter: int = -1  # `counter` at the dump: entries are current while equal


class CallPayload(msgspec.Struct, frozen=True, kw_only=True):
    """A wrapped ProcessGroup call entered and not finished (P2P, monitored_barrier, rooted ops)."""

    op: str
    group: str
    epoch: int = 1
    since_ns: int = 0
    peer: int | None = None
    tag: int | None = None
    seq: int | None = None
    root: int | None = None
    blocking: bool = True


class CountPayload(msgspec.Struct, frozen=True, kw_only=True):
    group: str
    epoch: int = 1
    peer: int
    send: bool
    posted: int
    done: int


class WaitPayload(msgspec.Struct, frozen=True, kw_only=True):
    """init_process_group, new_group or a store wait that has not returned."""

    what: str
    since_ns: int
    expected: int = 0
    detail: str = ""
    rank: int | None = None


class RecordPayload(msgspec.Struct, frozen=True, kw_only=True):
    """The whole record of one process."""

    beat: int  # rises by one with each write
    at_ns: int  # when it was written
    pid: int = 0
    rank: int = -1  # torch's once initialised, else from the environment, -1 unknown
    world_size: int = 0
    local_rank: int = -1
    certain: bool = False  # rank and world size come from torch
    initialised: bool = False
    destroyed: bool = False
    shutting_down: bool = False
    script: str = ""
    torch: str = ""
    probe: str = ""  # the probe's version
    environment: dict[str, str] = {}  # only the names in probe/launch_names.py
    step: int | None = None
    phase: str = ""
    phase_since_ns: int = 0
    phase_limit_s: float | None = None
    groups: list[GroupPayload] = []
    calls: list[CallPayload] = []
    p2p: list[CountPayload] = []
    waits: list[WaitPayload] = []
    socket: str = ""  # path of the _WorkerServer socket, "" when there is none
    lacks: list[str] = []  # what is missing and why, in words
    omitted: int = 0  # list items that did not fit


class ExitPayload(msgspec.Struct, frozen=True, kw_only=True):
    """The exit mark: written by atexit or the excepthook."""

    code: int | None = None
    exception: str = ""  # type name of the uncaught exception
    at_ns: int = 0
