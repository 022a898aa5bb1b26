"""The answers of NCCL RAS about one job: which of its ranks they speak of, and what stands still.

RAS numbers members within each communicator and names processes by address and pid, so each member
is looked for among the job's ranks once per answer. An answer speaks for the whole job, whoever of
its nodes has asked; the newest stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from hangwatch_agent import wire
from hangwatch_server import ranges
from hangwatch_server.board.slots import Slot
from hangwatch_server.model import GroupView, RasMember, RasView

# A hung job may stop answering as well: its last word stands for so long.
KEEP_S = 120.0
_SAME_ANSWER_S = 0.5  # an answer that arrives again, or late over a slower way


@dataclass(frozen=True, slots=True)
class _Resolved:
    """A communicator with its members as ranks; ages are added for each snapshot."""

    gid: str
    communicator: wire.RasCommunicator
    members: tuple[RasMember, ...]
    unmapped: int


@dataclass(slots=True)
class _Standstill:
    """Since when a communicator's counts and states are the same, over how many answers."""

    fingerprint: int
    since_s: float
    answers: int = 1


class RasBook:
    """Mutable state of one job's RAS answers; the board alone calls it."""

    def __init__(self) -> None:
        self._report: wire.RasReport | None = None
        self._taken_s = 0.0
        self._node = ""
        self._still: dict[str, _Standstill] = {}
        self._resolved: tuple[_Resolved, ...] = ()
        self._resolved_for: tuple[object, ...] = ()
        self._ranks: frozenset[int] = frozenset()

    def take(self, report: wire.RasReport, node: str, now_s: float) -> None:
        """Keep an answer that a node brings, if it is newer than the one at hand."""
        taken_s = now_s - max(0.0, report.age_s)
        if self._report is not None and taken_s <= self._taken_s + _SAME_ANSWER_S:
            return
        still: dict[str, _Standstill] = {}
        for item in report.communicators:
            fingerprint = hash(item)
            old = self._still.get(item.hash)
            if old is not None and old.fingerprint == fingerprint:
                still[item.hash] = _Standstill(fingerprint, old.since_s, old.answers + 1)
            else:
                still[item.hash] = _Standstill(fingerprint, taken_s)
        self._report, self._taken_s, self._still = report, taken_s, still
        self._node = node

    def brought_by(self, node: str, at_s: float) -> wire.RasReport | None:
        """The answer at hand, aged as of that moment, if this node has brought it."""
        if self._report is None or self._node != node:
            return None
        return msgspec.structs.replace(self._report, age_s=max(0.0, at_s - self._taken_s))

    def ranks(self, now_s: float) -> frozenset[int]:
        """The ranks that the newest answer speaks of, as of the last look."""
        is_old = self._report is None or now_s - self._taken_s > KEEP_S
        return frozenset() if is_old else self._ranks

    def forget(self) -> None:
        """The job began anew: what its old processes said is over."""
        self._report, self._still, self._resolved = None, {}, ()
        self._ranks, self._resolved_for = frozenset(), ()

    def views(
        self,
        slots: Mapping[int, Slot],
        nodes: Mapping[str, tuple[str, ...]],
        groups: Mapping[str, GroupView],
        world_size: int,
        version: int,
        now_s: float,
    ) -> tuple[RasView, ...]:
        """The communicators of the newest answer; `nodes` are the addresses of each node.

        `version` rises when a rank's process changes: members are then looked for again.
        """
        if self._report is None or now_s - self._taken_s > KEEP_S:
            return ()
        key = (id(self._report), version, world_size, len(nodes), len(groups))
        if key != self._resolved_for:
            finder = _Finder(slots, nodes, world_size)
            self._resolved = _resolved(self._report, finder, _gids(groups))
            self._resolved_for = key
            self._ranks = frozenset(
                member.rank for item in self._resolved for member in item.members
            )
        return tuple(self._view(item, now_s) for item in self._resolved if len(item.members) > 1)

    def _view(self, item: _Resolved, now_s: float) -> RasView:
        assert self._report is not None  # views() has looked
        hash = item.communicator.hash
        still = self._still[hash]
        return RasView(
            gid=item.gid,
            hash=hash,
            size=item.communicator.size,
            ops=item.communicator.ops,
            members=item.members,
            unmapped=item.unmapped,
            version=self._report.version,
            age_s=now_s - self._taken_s,
            unchanged_s=now_s - still.since_s,
            same_answers=still.answers,
        )


def group_of(view: RasView) -> GroupView:
    """The group that a communicator stands for where no rank's probe has told of it."""
    return GroupView(
        gid=view.gid,
        name=f"communicator {view.hash[:8]}",
        description="",
        backend="nccl",
        ranks=tuple(member.rank for member in view.members),
    )


class _Finder:
    """Finds the rank that a member of a communicator is."""

    def __init__(
        self,
        slots: Mapping[int, Slot],
        nodes: Mapping[str, tuple[str, ...]],
        world_size: int,
    ) -> None:
        self._world_size = world_size
        self._nodes_at: dict[str, set[str]] = {}
        for node, addresses in nodes.items():
            for address in addresses:
                self._nodes_at.setdefault(address, set()).add(node)
        self._by_pid: dict[int, list[tuple[str, int]]] = {}
        for rank, slot in slots.items():
            pid = slot.beat.pid if slot.beat.inner_pid is None else slot.beat.inner_pid
            self._by_pid.setdefault(pid, []).append((slot.node, rank))

    def rank_of(self, member: wire.RasMember, host: str, size: int) -> int | None:
        """By address and pid, by a pid that only one rank has, else by the place in the world."""
        found = self._by_pid.get(member.pid, [])
        nodes = self._nodes_at.get(host)
        if nodes:
            found = [item for item in found if item[0] in nodes]
        if len(found) == 1:
            return found[0][1]
        # A communicator of the whole world is numbered as the world is.
        is_world = size == self._world_size and (len(found) > 1 or member.pid < 0)
        return member.rank if is_world else None


def _resolved(
    report: wire.RasReport, finder: _Finder, gids: Mapping[str, str | None]
) -> tuple[_Resolved, ...]:
    return tuple(_resolve(report, item, finder, gids) for item in report.communicators)


def _resolve(
    report: wire.RasReport,
    item: wire.RasCommunicator,
    finder: _Finder,
    gids: Mapping[str, str | None],
) -> _Resolved:
    found: dict[int, RasMember] = {}
    for member in item.members:
        host = report.hosts[member.host] if member.host >= 0 else ""
        rank = finder.rank_of(member, host, item.size)
        if rank is not None and rank not in found:
            found[rank] = RasMember(
                rank=rank, state=member.state, counts=member.counts, error=member.error
            )
    members = tuple(found[rank] for rank in sorted(found))
    gid = gids.get(ranges.text([member.rank for member in members])) or f"ras-{item.hash[:16]}"
    return _Resolved(gid, item, members, max(0, item.size - len(members)))


def _gids(groups: Mapping[str, GroupView]) -> dict[str, str | None]:
    """The gid of the NCCL group with exactly these ranks; None where several have them."""
    found: dict[str, str | None] = {}
    for group in groups.values():
        if "nccl" in group.backend:
            text = ranges.text(group.ranks)
            found[text] = None if text in found else group.gid
    return found
