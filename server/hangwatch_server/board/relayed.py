"""The board of one of several servers: whole, but some of its nodes are heard through another one.

While such a node's server cannot be heard, nothing is known of its ranks: they have no beat, and
their agent is late but never lost, since it may well speak where it is not heard from here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from dataclasses import dataclass

from hangwatch_agent import wire
from hangwatch_server.board import base, whole
from hangwatch_server.board.jobs import BoardJob
from hangwatch_server.board.memory import MemoryBoard
from hangwatch_server.model import Link, RankView


@dataclass(frozen=True, slots=True)
class NodeWhole:
    """All that is known of one node, as it is told to another server."""

    hello: wire.Hello
    clock_ahead_s: float | None
    heartbeat: wire.Heartbeat
    age_s: float  # of the heartbeat


class RelayedBoard(MemoryBoard):
    """Implements board.Board; `relay` feeds it and says what is heard."""

    def __init__(self, late_s: float = base.LATE_S, lost_s: float = base.LOST_S) -> None:
        super().__init__(late_s, lost_s)
        self._unheard: frozenset[str] = frozenset()
        self._own: Collection[str] = ()
        self._is_deaf = False

    def set_hearing(self, *, unheard: frozenset[str], is_deaf: bool, own: Collection[str]) -> None:
        """Which known nodes' servers are not heard, and whether unknown ones may be among them.

        `own` are the nodes connected to this server, whom it hears by itself.
        """
        self._unheard, self._is_deaf, self._own = unheard, is_deaf, own

    def has(self, node: str) -> bool:
        return node in self._nodes

    def age_s(self, node: str, now_s: float) -> float:
        """Since anything was heard of the node."""
        known = self._nodes.get(node)
        return float("inf") if known is None else now_s - known.heard_s

    def whole(self, node: str, now_s: float) -> NodeWhole | None:
        """The node with all its ranks; None for one that is not on the board."""
        known = self._nodes.get(node)
        if known is None:
            return None
        jobs = [self._jobs[id] for id in sorted(known.jobs) if id in self._jobs]
        return NodeWhole(
            known.hello,
            known.clock_ahead_s,
            whole.heartbeat(node, jobs, known.dropped, known.heard_s),
            max(0.0, now_s - known.heard_s),
        )

    def unheard(self, job: str) -> int:
        found = self._jobs.get(job)
        if found is None or not (self._unheard or self._is_deaf):
            return 0
        count = sum(len(found.by_node.get(node, ())) for node in self._unheard)
        if not self._is_deaf:
            return count
        stored = found.base_processes.items()
        return count + sum(
            rank not in found.slots and process[0] not in self._own for rank, process in stored
        )

    def links(self, now_s: float) -> dict[str, Link]:
        links = super().links(now_s)
        for node in self._unheard & links.keys():
            links[node] = Link.LATE
        return links

    def _view(self, job: BoardJob, rank: int, links: dict[str, Link], now_s: float) -> RankView:
        view = super()._view(job, rank, links, now_s)
        if not self._unheard and not self._is_deaf:
            return view
        if view.node in self._unheard:
            return dataclasses.replace(view, link=Link.LATE, beat=None, places=None)
        if self._is_deaf and view.link is Link.LOST and view.node not in self._own:
            return dataclasses.replace(view, link=Link.LATE)  # it may have found another server
        return view
