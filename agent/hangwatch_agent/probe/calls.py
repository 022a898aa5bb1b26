"""Calls that gloo's recorder misses or leaves incomplete, seen by wrapping methods of ProcessGroup.

These are send, recv, recv_anysource and monitored_barrier (not recorded) and broadcast, reduce,
gather and scatter (recorded without their root). Functions of torch.distributed are never wrapped:
P2POp and user code compare them by identity. Calls issued from C++ do not pass here. A Work is held
weakly, since it keeps tensors alive; it counts as finished once it says so or nobody holds it.
"""

from __future__ import annotations

import functools
import itertools
import sys
import time
import weakref
from collections import Counter
from types import FrameType
from typing import Any, Callable

from . import counters, dynamo, groups, sites

P2P = {"send": "send", "recv": "recv", "recv_anysource": "recv_any"}
ROOTED = ("broadcast", "reduce", "gather", "scatter")
BARRIER = "monitored_barrier"
BARRIER_IDS = 2  # collective_seq_ids that one monitored_barrier uses up (torch 2.13, measured)
ANY_PEER = -1
MAX_PENDING = 1024
MAX_CHANNELS = 4096
BLOCKING_FRAMES = 4  # dist.recv, decorators, dist.irecv


class Channel:
    """Sends to, or receives from, one peer on one group."""

    def __init__(self) -> None:
        self.numbers = itertools.count(1)  # next() is atomic under the GIL: no lock in the trainer
        self.posted = 0


class Call:
    """One wrapped call that has been entered and not finished."""

    __slots__ = (
        "blocking",
        "channel",
        "group",
        "op",
        "peer",
        "root",
        "seq",
        "since_ns",
        "site",
        "tag",
        "work",
    )

    def __init__(self, op: str, group: groups.Group) -> None:
        self.op = op
        self.group = group
        self.since_ns = time.monotonic_ns()
        self.peer: int | None = None
        self.tag: int | None = None
        self.seq: int | None = None
        self.root: int | None = None
        self.blocking = True
        self.site: Any = None  # (code, line) of the user's call
        self.channel: tuple[str, int, int, bool] | None = None
        self.work: Any = None  # a weak reference to the Work, once there is one


class Calls:
    """The wrappers and what they saw."""

    def __init__(self, table: groups.Table, lacks: dict[str, str]) -> None:
        self.table = table
        self._lacks = lacks
        self._originals: dict[str, Any] = {}
        self._pending: dict[int, Call] = {}
        self._channels: dict[tuple[str, int, int, bool], Channel] = {}
        self._class: Any = None
        self.place: Any = None  # finds a caller's place in the user's code; None: not asked for

    def forget(self) -> None:
        """Drop the parent's state in a forked child; the wrappers stay."""
        self.table = groups.Table()
        self._pending = {}
        self._channels = {}

    def install(self) -> None:
        self._class = getattr(sys.modules.get(counters.BINDINGS), "ProcessGroup", None)
        for name in (*P2P, *ROOTED, BARRIER, "_set_group_name"):
            original = getattr(self._class, name, None)
            if original is None:
                self._lacks[f"wrap_{name}"] = f"this torch has no ProcessGroup.{name} to watch"
                continue
            make = self._naming if name == "_set_group_name" else self._watching
            self._originals[name] = original
            setattr(self._class, name, make(name, original))

    def remove(self) -> None:
        for name, original in self._originals.items():
            setattr(self._class, name, original)
        self._originals.clear()

    def _naming(self, name: str, original: Any) -> Callable[..., Any]:
        @functools.wraps(original)
        def named(process_group: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(process_group, *args, **kwargs)
            try:
                self._created(process_group, str(args[0]), sys._getframe(1))
            except Exception:  # boundary to the trainer: the table adopts the group later
                self._lacks["created"] = "the creation of a group could not be counted"
            return result

        return named

    def _created(self, process_group: Any, name: str, caller: FrameType) -> None:
        ranks = _local(caller, "global_ranks_in_group")
        if ranks is None:
            return  # an unknown creator: the table finds the group in torch's own list
        members = tuple(int(rank) for rank in ranks) or tuple(range(process_group.size()))
        self.table.created(process_group, name, members, is_watched=True)

    def _watching(self, name: str, original: Any) -> Callable[..., Any]:
        @functools.wraps(original)
        def watched(process_group: Any, *args: Any, **kwargs: Any) -> Any:
            call = None
            try:
                call = self._enter(name, process_group, args, kwargs, sys._getframe(1))
            except Exception:  # boundary to the trainer: the call goes on unseen
                self._lacks["calls"] = f"a call of {name} could not be followed"
            if call is None:
                return original(process_group, *args, **kwargs)
            raw = counters.raw_of(process_group) if call.op not in ROOTED else None
            self._begin(call, raw)
            work = None
            try:
                work = original(process_group, *args, **kwargs)
            finally:
                self._end(call, process_group, raw, work)
            return work

        dynamo.keep_out(watched)
        return watched

    def _enter(
        self, name: str, process_group: Any, args: Any, kwargs: Any, caller: FrameType
    ) -> Call | None:
        group = self.table.of(process_group)
        if group is None:
            return None
        root = _note_root(name, process_group, group, args, kwargs) if name in ROOTED else None
        if name != BARRIER and not _is_on_cpu((*args, *kwargs.values())):
            # NCCL's recorder sees these itself, but not which of its pair each one is; its
            # sequence number leaves P2P out.
            if name in P2P:
                group.uncounted += 1
                self._number(Call(P2P[name], group), name, args, kwargs, caller)
            return None
        call = Call(P2P.get(name, name), group)
        if self.place is not None:
            call.site = self.place(caller)
        if name in P2P:
            self._number(call, name, args, kwargs, caller)
        elif name in ROOTED:
            call.root = root
            call.blocking = not _local(caller, "async_op")
        return call

    def _number(self, call: Call, name: str, args: Any, kwargs: Any, caller: FrameType) -> None:
        call.blocking = _is_blocking(caller)
        is_any = name == "recv_anysource"
        peer = None if is_any else _argument(args, kwargs, 1, ("dstRank", "srcRank"))
        call.tag = _argument(args, kwargs, 1 if is_any else 2, ("tag",))
        call.peer = None if peer is None else call.group.global_rank(peer)
        key = (
            call.group.name,
            call.group.epoch,
            ANY_PEER if call.peer is None else call.peer,
            name == "send",
        )
        channel = self._channels.get(key)
        if channel is None:
            if len(self._channels) >= MAX_CHANNELS:
                self._lacks["channels"] = (
                    f"only {MAX_CHANNELS} pairs of sender and receiver are counted"
                )
                return
            channel = self._channels.setdefault(key, Channel())
        call.channel = key
        call.seq = channel.posted = next(channel.numbers)

    def _begin(self, call: Call, raw: int | None) -> None:
        group = call.group
        if raw is not None:
            if not group.entering:
                group.entry_seq = raw + group.offset
            group.entering += 1
        if len(self._pending) < MAX_PENDING:
            self._pending[id(call)] = call
        else:
            self._lacks["pending"] = (
                f"more than {MAX_PENDING} calls are in flight: not all are shown"
            )

    def _end(self, call: Call, process_group: Any, raw: int | None, work: Any) -> None:
        """Correct the group's offset by what this call did to the counter, and follow its Work."""
        try:
            if raw is not None:
                _correct(call, raw, counters.raw_of(process_group))
            if work is None:
                self._pending.pop(id(call), None)
            else:
                self._follow(call, work)
        except Exception:  # boundary to the trainer
            self._pending.pop(id(call), None)
            self._lacks["calls"] = f"a call of {call.op} could not be followed to its end"

    def _follow(self, call: Call, work: Any) -> None:
        call.work = weakref.ref(work, functools.partial(self._pending.pop, id(call)))

    def in_flight(self) -> list[Call]:
        """Calls that are not finished, oldest first."""
        for key, call in list(self._pending.items()):
            work = call.work() if call.work is not None else None
            if work is not None and work.is_completed():
                self._pending.pop(key, None)
        live = {id(group) for _, group in self.table.live()}
        alive = [call for call in list(self._pending.values()) if id(call.group) in live]
        return sorted(alive, key=lambda call: call.since_ns)

    def recorded(self) -> list[dict[str, Any]]:
        """Open sends and receives as NCCL's recorder has them, numbered by what was counted here.

        They hold as long as the group's counter has not moved since the dump.
        """
        found: list[dict[str, Any]] = []
        for _, group in self.table.live():
            if group.p2p and group.dumped_counter == group.counter:
                found.extend(self._recorded_of(group))
        return found

    def _recorded_of(self, group: groups.Group) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        newer: dict[tuple[int, bool], int] = {}
        for entry in reversed(group.p2p):
            peer, is_send = group.global_rank(entry["peer"]), entry["op"] == "send"
            if peer is None:
                continue
            after = newer.get((peer, is_send), 0)
            newer[peer, is_send] = after + 1
            channel = self._channels.get((group.name, group.epoch, peer, is_send))
            number = channel.posted - after if channel is not None else 0
            if not entry["retired"]:
                call = Call(entry["op"], group)
                call.since_ns, call.peer, call.blocking = group.moved_ns, peer, False
                call.seq = number if number > 0 else None
                found.insert(0, payload(call))
        return found

    def counts(self, in_flight: list[Call], recorded: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Per live group, peer and direction: calls posted and finished."""
        keys = [call.channel for call in in_flight if call.channel is not None]
        keys += [(one["group"], one["epoch"], one["peer"], one["op"] == "send") for one in recorded]
        open_calls = Counter(keys)
        live = {(group.name, group.epoch) for _, group in self.table.live()}
        return [
            {
                "group": key[0],
                "epoch": key[1],
                "peer": key[2],
                "send": key[3],
                "posted": channel.posted,
                "done": channel.posted - open_calls[key],
            }
            for key, channel in list(self._channels.items())
            if key[:2] in live
        ]


def payload(call: Call) -> dict[str, Any]:
    return {
        "op": call.op,
        "group": call.group.name,
        "epoch": call.group.epoch,
        "since_ns": call.since_ns,
        "peer": call.peer,
        "tag": call.tag,
        "seq": call.seq,
        "root": call.root,
        "blocking": call.blocking,
        "site": "" if call.site is None else sites.text(call.site),
    }


def _correct(call: Call, raw: int, after: int | None) -> None:
    """Keep `raw + offset` equal to the recorder's number across a call that the recorder misses."""
    group = call.group
    if after is not None and after != raw:
        burned = BARRIER_IDS if call.op == BARRIER else 0
        group.burned += burned
        group.offset += burned - (after - raw)
    group.entering -= 1


def _is_torchs(frame: FrameType) -> bool:
    return frame.f_code.co_filename.endswith("distributed_c10d.py")


def _local(frame: FrameType, name: str) -> Any:
    """A local of one of torch's own frames, else None.

    Never of the user's: before Python 3.13, asking for a frame's locals makes a copy that keeps all
    of them alive, tensors included, until the function returns.
    """
    return frame.f_locals.get(name) if _is_torchs(frame) else None


def _is_blocking(caller: FrameType) -> bool:
    """Whether dist.send or dist.recv is among the callers: recv goes through irecv."""
    frame: FrameType | None = caller
    for _ in range(BLOCKING_FRAMES):
        if frame is None:
            return False
        if frame.f_code.co_name in ("send", "recv") and _is_torchs(frame):
            return True
        frame = frame.f_back
    return False


def _is_on_cpu(values: tuple[Any, ...]) -> bool:
    """Whether the first tensor among the arguments is on the CPU; True where there is none."""
    for value in values:
        item = value
        while isinstance(item, (list, tuple)) and item:
            item = item[0]
        is_cpu = getattr(item, "is_cpu", None)
        if is_cpu is not None:
            return bool(is_cpu)
    return True


def _argument(args: Any, kwargs: Any, position: int, names: tuple[str, ...]) -> int | None:
    for name in names:
        if name in kwargs:
            return int(kwargs[name])
    return int(args[position]) if len(args) > position else None


def _note_root(
    name: str, process_group: Any, group: groups.Group, args: Any, kwargs: Any
) -> int | None:
    """The root as global rank; kept under the number that the call gets, for its recorder entry."""
    root = _root(name, args, kwargs)
    raw = counters.raw_of(process_group)
    found = None if root is None else group.global_rank(root)
    if found is not None and raw is not None:
        group.roots.append((raw + group.offset + 1, found))
    return found


def _root(name: str, args: Any, kwargs: Any) -> int | None:
    """The root as group rank, from the options object or from the short overload's argument."""
    if "root" in kwargs:
        return int(kwargs["root"])
    for value in (*args[1:], *kwargs.values()):
        root = getattr(value, "rootRank", None)
        if root is not None:
            return int(root)
    position = 2 if name in ("gather", "scatter") else 1
    value = args[position] if len(args) > position else 0
    return int(value) if isinstance(value, int) else None
