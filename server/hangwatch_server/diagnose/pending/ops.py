"""A pending operation: something that at least one rank has entered and not finished.

The common shape of collectives, sends and receives, monitored barriers and rendezvous, so that one
wait-for graph covers them all. How each kind is found is in the module named for it.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from hangwatch_agent.wire import Entry
from hangwatch_server import ranges
from hangwatch_server.model import GroupRef, GroupView


class Form(StrEnum):
    COLLECTIVE = "collective"
    MONITORED_BARRIER = "monitored_barrier"
    P2P = "p2p"
    RENDEZVOUS = "rendezvous"
    SEEN = "seen"  # by stacks alone: which call of which group is not known


class PendingOp(msgspec.Struct, kw_only=True):
    """`have` entered it, `absent` did not, `unknown` nobody can say, `holding` block it inside.

    `unplaced` wait in some collective, nobody can say whether in this one: they hold up nobody.
    """

    form: Form
    op: str
    gid: str = ""
    seq: int | None = None
    have: dict[int, Entry | None] = msgspec.field(default_factory=dict)
    absent: tuple[int, ...] = ()
    unknown: tuple[int, ...] = ()
    holding: tuple[int, ...] = ()  # stopped, gone, or their GPU has not started it
    unplaced: tuple[int, ...] = ()
    stalled_s: float = 0.0
    peer: int | None = None  # P2P: whom `have` waits for
    is_mismatch: bool = False
    queued: tuple[
        int, ...
    ] = ()  # where `have`, in order, have queued it for their GPUs; () unknown
    is_agreed: bool = False  # of every member it is known where it is, all of `have` call the same
    detail: str = ""  # rendezvous: the init method; seen: which ranks are where
    done: tuple[int, ...] = ()  # members that have finished it
    doubted: tuple[int, ...] = ()  # members whose counters cannot be true beside their peers'
    source: str = ""  # who says so where no probe does, as a sentence

    @property
    def sort_key(self) -> tuple[str, str, int, int]:
        return (self.form, self.gid, -1 if self.seq is None else self.seq, min(self.have))


def first_name(have: dict[int, Entry | None]) -> str:
    """What the first member that knows it calls the operation."""
    for entry in have.values():
        if entry is not None and entry.op:
            return entry.op
    return ""


_DEFAULT_NAMES = frozenset({"", "0", "default_pg"})


def is_default(group: GroupView) -> bool:
    return group.description == "default_pg" or (
        group.name in _DEFAULT_NAMES and group.description in ("", "undefined")
    )


def group_name(group: GroupView | None) -> str:
    """As people read it: "the default group", "dp-1", "group 3"."""
    if group is None:
        return "an unknown group"
    if is_default(group):
        return "the default group"
    if group.description and group.description != "undefined":
        return group.description
    return f"group {group.name}" if group.name.isdigit() else group.name


def group_ref(group: GroupView | None) -> GroupRef | None:
    if group is None:
        return None
    name = "default_pg" if is_default(group) else group_name(group)
    return GroupRef(id=group.gid, name=name, ranks=ranges.text(group.ranks))


def call_text(op: PendingOp) -> str:
    """The call without its group: "all_reduce #29", "recv from rank 3 (#2)"."""
    if op.form is Form.P2P:
        number = f" (#{op.seq})" if op.seq is not None else ""
        return f"{_p2p_verb(op)}{number}"
    if op.seq is None:
        return op.op
    if op.is_mismatch:
        return f"call #{op.seq}"
    return f"{op.op or 'collective'} #{op.seq}"


def label(op: PendingOp, group: GroupView | None) -> str:
    """The call with its group in front: "dp-1 all_reduce #29"."""
    if op.form in (Form.RENDEZVOUS, Form.SEEN):
        return op.op
    return f"{group_name(group)} {call_text(op)}"


def _p2p_verb(op: PendingOp) -> str:
    if op.peer is None:
        return "recv from any rank"
    return f"send to rank {op.peer}" if op.op == "send" else f"recv from rank {op.peer}"
