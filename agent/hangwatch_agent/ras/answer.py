"""Reads the JSON that NCCL 2.28.7 and newer tells, that of 2.28 with its missing comma included."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec

from hangwatch_agent import json_weight, wire
from hangwatch_agent.errors import RasError
from hangwatch_agent.ras.status import ERRORS, NO_ERROR, Communicator, Member, Status, op_name
from hangwatch_agent.wire import RasState

# The numbers come from a job and go on the wire, which has 64 bits for them.
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Small = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
IN_PROGRESS = 7
# NCCL 2.28.7 and 2.28.9 leave out the comma between these two keys of a missing rank.
_MISSING_COMMA = re.compile(rb'("nvml_dev": ?-?\d{1,10})(\s{1,64}"status")')


class RawStatus(msgspec.Struct):
    init_state: Small = 0
    async_error: Small = 0
    finalize_called: bool = False
    destroy_flag: bool = False
    abort_flag: bool = False
    unresponsive: bool = False
    considered_dead: bool = False


class RawRank(msgspec.Struct):
    rank: Small
    host: str = ""
    pid: Small = -1
    cuda_dev: Small = -1
    nvml_dev: Small = -1
    status: RawStatus = msgspec.field(default_factory=RawStatus)
    collective_counts: dict[str, Count] = {}


class RawCommunicator(msgspec.Struct):
    hash: str = ""
    secondary_hash: str = ""
    size: Small = 0
    ranks: list[RawRank] = []
    missing_ranks: list[RawRank] = []


class RawRas(msgspec.Struct):
    timeouts_count: Small = 0


class RawAnswer(msgspec.Struct):
    communicators: list[RawCommunicator]
    nccl_version: str = ""
    ras: RawRas = msgspec.field(default_factory=RawRas)


_decoder = msgspec.json.Decoder(RawAnswer)


def parse(data: bytes) -> Status:
    """Raise RasError for anything that is no whole answer."""
    raw = _decoded(data)
    return Status(
        version=raw.nccl_version,
        communicators=[_communicator(item) for item in raw.communicators],
        timeouts=raw.ras.timeouts_count,
    )


def _decoded(data: bytes) -> RawAnswer:
    if json_weight.is_too_heavy(data):
        raise RasError(f"the answer of NCCL RAS, {len(data)} bytes, holds too much to be read")
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        first = error
    try:
        return _decoder.decode(_MISSING_COMMA.sub(rb"\1,\2", data))
    except (msgspec.DecodeError, RecursionError, ValueError):
        raise RasError(f"the answer of NCCL RAS cannot be read: {str(first)[:200]}") from first


def _communicator(raw: RawCommunicator) -> Communicator:
    hashes = [part.removeprefix("0x") for part in (raw.hash, *raw.secondary_hash.split(":"))]
    found = [_member(rank) for rank in raw.ranks[: wire.MAX_RAS_MEMBERS]]
    found += [_missing(rank) for rank in raw.missing_ranks[: wire.MAX_RAS_MEMBERS]]
    members = {member.rank: member for member in found if 0 <= member.rank < raw.size}
    return Communicator(
        hash=":".join(part[:16] for part in hashes[:3] if part),
        size=max(raw.size, 0),
        members=[members[rank] for rank in sorted(members)],
    )


def _member(raw: RawRank) -> Member:
    return Member(
        rank=raw.rank,
        host=raw.host,
        pid=raw.pid,
        gpu=raw.nvml_dev,
        state=_state(raw.status),
        counts={op_name(name): count for name, count in raw.collective_counts.items()},
        error=_error(raw.status),
    )


def _missing(raw: RawRank) -> Member:
    if raw.status.considered_dead:
        state = RasState.DEAD
    else:
        state = RasState.UNRESPONSIVE if raw.status.unresponsive else RasState.LEFT
    return Member(rank=raw.rank, host=raw.host, pid=raw.pid, gpu=raw.nvml_dev, state=state)


def _state(status: RawStatus) -> RasState:
    """As NCCL itself orders the flags: an abort says more than that it is being torn down."""
    if status.abort_flag:
        return RasState.ABORT
    if status.finalize_called or status.destroy_flag:
        return RasState.FINALIZE
    return RasState.INIT if status.init_state == IN_PROGRESS else RasState.RUNNING


def _error(status: RawStatus) -> str:
    for code in (status.async_error, status.init_state):
        if code not in NO_ERROR:
            return ERRORS.get(code, f"error {code}")
    return ""
