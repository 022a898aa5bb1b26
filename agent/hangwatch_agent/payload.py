"""What the probe writes into a record, as the node service reads it (JSON, see probe/record.py).

The probe builds plain dicts with these keys, since it may run on an older Python without msgspec.
Every `*_ns` is CLOCK_MONOTONIC of the node. Unknown keys are ignored, so either side may be newer.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

# Records are job-user input. JSON numbers have no bound, those of the wire are 64-bit: a larger one
# would pass here and fail in the heartbeat of the whole node.
Number = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class EntryPayload(msgspec.Struct, frozen=True, kw_only=True):
    """One recorder entry, trimmed to what diagnosis needs."""

    seq: Number  # collective_seq_id
    op: str
    retired: bool
    started: bool | None = None
    input_sizes: list[list[Number]] = []
    output_sizes: list[list[Number]] = []
    input_dtypes: list[str] = []
    output_dtypes: list[str] = []
    record_id: Number = -1
    timeout_ms: Number | None = None
    site: str = ""  # where the user's code made the call; only with --call-sites
    root: Number | None = None  # global rank, of rooted collectives


class TailPayload(msgspec.Struct, frozen=True, kw_only=True):
    """Older finished entries in short, see probe/tails.py: (collective_seq_id, index into kinds)"""

    calls: list[tuple[Number, Number]] = []
    kinds: list[EntryPayload] = []


class GroupPayload(msgspec.Struct, frozen=True, kw_only=True):
    """One live process group of this rank, from torch.distributed's own tables and the counters."""

    name: str
    description: str = ""
    backend: str = ""
    ranks: str = ""  # global ranks in group order, as "0,1,2" or "0-3"
    epoch: Number = 1
    timeout_s: float | None = None
    counter: Number = 0  # moves with every call; never compared across ranks
    moved_ns: Number = 0  # when `counter` last moved
    seq: Number | None = None  # comparable collective_seq_id where it is known without a dump
    finished: Number | None = None  # NCCL only
    started: Number | None = None  # NCCL only, with start events
    entries: list[EntryPayload] = []  # newest last; from the dump at `dumped_ns`
    tail: TailPayload | None = None  # what the same dump has before `entries`
    dumped_ns: Number = 0  # 0: never
    dumped_counter: Number = -1  # `counter` at the dump: entries are current while equal


class CallPayload(msgspec.Struct, frozen=True, kw_only=True):
    """A wrapped ProcessGroup call entered and not finished (P2P, monitored_barrier, rooted ops)."""

    op: str
    group: str
    epoch: Number = 1
    since_ns: Number = 0
    peer: Number | None = None
    tag: Number | None = None
    seq: Number | None = None
    root: Number | None = None
    blocking: bool = True
    site: str = ""


class CountPayload(msgspec.Struct, frozen=True, kw_only=True):
    group: str
    epoch: Number = 1
    peer: Number
    send: bool
    posted: Number
    done: Number


class WaitPayload(msgspec.Struct, frozen=True, kw_only=True):
    """init_process_group, new_group or a store wait that has not returned."""

    what: str
    since_ns: Number
    expected: Number = 0
    detail: str = ""
    rank: Number | None = None
    stage: str = ""  # "store" or "group"


class RecordPayload(msgspec.Struct, frozen=True, kw_only=True):
    """The whole record of one process."""

    beat: Number  # rises by one with each write
    at_ns: Number  # when it was written
    pid: Number = 0
    rank: Number = -1  # torch's once initialised, else from the environment, -1 unknown
    world_size: Number = 0
    local_rank: Number = -1
    certain: bool = False  # rank and world size come from torch
    initialised: bool = False
    destroyed: bool = False
    shutting_down: bool = False
    groups_begun: Number | None = None
    script: str = ""
    torch: str = ""
    probe: str = ""  # the probe's version
    environment: dict[str, str] = {}  # only the names in probe/launch_names.py
    step: Number | None = None
    phase: str = ""
    phase_since_ns: Number = 0
    phase_limit_s: float | None = None
    groups: list[GroupPayload] = []
    calls: list[CallPayload] = []
    p2p: list[CountPayload] = []
    waits: list[WaitPayload] = []
    socket: str = ""  # path of the _WorkerServer socket, "" when there is none
    lacks: list[str] = []  # what is missing and why, in words
    omitted: Number = 0  # list items that did not fit


class ExitPayload(msgspec.Struct, frozen=True, kw_only=True):
    """The exit mark: written by atexit or the excepthook."""

    code: Number | None = None
    exception: str = ""  # type name of the uncaught exception
    at_ns: Number = 0
