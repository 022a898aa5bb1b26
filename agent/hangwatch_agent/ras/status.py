"""What one RAS answer says, before it is put into the wire's compact words. Plain data.

Both parsers (`answer` for JSON, `text`) make this, and `report` turns it into a wire.RasReport.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from hangwatch_agent import wire
from hangwatch_agent.wire import RasState

MAX_ERROR = 100
MAX_HOST = 64
UNKNOWN_HOSTS = frozenset({"", "unknown"})
# ncclResult_t of nccl.h; 0 is success and 7 in progress.
ERRORS = {
    1: "unhandled CUDA error",
    2: "system error",
    3: "internal error",
    4: "invalid argument",
    5: "invalid usage",
    6: "remote process error",
    8: "timeout",
}
NO_ERROR = frozenset({0, 7})
_INNER_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass(slots=True)
class Member:
    """One member of a communicator; `counts` by op name."""

    rank: int
    host: str = ""
    pid: int = -1
    gpu: int = -1
    state: RasState = RasState.RUNNING
    counts: dict[str, int] = field(default_factory=dict)
    error: str = ""


@dataclass(slots=True)
class Communicator:
    hash: str
    size: int
    members: list[Member] = field(default_factory=list)


@dataclass(slots=True)
class Status:
    version: str
    communicators: list[Communicator]
    is_text: bool = False
    timeouts: int = 0
    omitted: int = 0  # members that were not read


def pids(status: Status) -> frozenset[int]:
    """The processes that an answer names: by these it is known whose job it speaks of."""
    return frozenset(
        member.pid for item in status.communicators for member in item.members if member.pid > 0
    )


def report(status: Status, launch: str, number: int, age_s: float) -> wire.RasReport:
    """The wire's form, within its limits: communicators whose members differ go first."""
    hosts: dict[str, int] = {}
    chosen: list[wire.RasCommunicator] = []
    left = wire.MAX_RAS_MEMBERS
    omitted = status.omitted
    for item in sorted(status.communicators, key=_weight):
        is_possible = item.size <= wire.MAX_WORLD_SIZE
        is_room = len(item.members) <= left and len(chosen) < wire.MAX_RAS_COMMUNICATORS
        if not (is_possible and is_room):
            omitted += len(item.members)
            continue
        left -= len(item.members)
        chosen.append(_communicator(item, hosts))
    return wire.RasReport(
        launch=launch,
        number=number,
        age_s=age_s,
        version=status.version[:32],
        is_text=status.is_text,
        hosts=tuple(hosts),
        communicators=tuple(chosen),
        timeouts=min(max(status.timeouts, 0), 1_000_000),
        omitted=omitted,
    )


def _weight(item: Communicator) -> tuple[bool, int]:
    first = item.members[0] if item.members else None
    is_uniform = all(
        first is not None and (member.state, member.counts) == (first.state, first.counts)
        for member in item.members
    )
    return is_uniform, -item.size


def _communicator(item: Communicator, hosts: dict[str, int]) -> wire.RasCommunicator:
    ops = tuple({name: None for member in item.members for name in member.counts})
    ops = ops[: wire.MAX_RAS_OPS]
    return wire.RasCommunicator(
        hash=item.hash[:64],
        size=item.size,
        ops=ops,
        members=tuple(_member(member, ops, hosts) for member in item.members),
    )


def _member(member: Member, ops: tuple[str, ...], hosts: dict[str, int]) -> wire.RasMember:
    host = member.host[:MAX_HOST]
    is_known = host not in UNKNOWN_HOSTS and host.isprintable()
    has_counts = all(name in member.counts for name in ops)
    return wire.RasMember(
        rank=member.rank,
        host=hosts.setdefault(host, len(hosts)) if is_known else -1,
        pid=member.pid if member.pid > 0 else -1,
        gpu=member.gpu if member.gpu >= 0 else -1,
        state=member.state,
        counts=tuple(member.counts[name] for name in ops) if has_counts else (),
        error=member.error[:MAX_ERROR],
    )


def op_name(name: str) -> str:
    """NCCL's name of an op as torch names it: "AllReduce" is all_reduce."""
    return _INNER_CAPITAL.sub("_", name).lower()[:32]
