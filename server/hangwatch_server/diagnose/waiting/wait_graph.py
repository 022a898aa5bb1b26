"""The bipartite AND wait-for graph of ranks and pending operations, and its roots.

An operation waits for every member that holds it up; a rank waits in its fronts. For a member that
nobody can tell about an operation waits only where nobody else holds it up: silence must hide no
proof. How the roots are found in the graph is in `roots`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter

from hangwatch_server.diagnose.calls import mismatch
from hangwatch_server.diagnose.calls.signature import Vote
from hangwatch_server.diagnose.pending import (
    collectives,
    monitored,
    p2p,
    ras,
    rendezvous,
    seen,
)
from hangwatch_server.diagnose.pending.ops import PendingOp
from hangwatch_server.diagnose.survey import Survey
from hangwatch_server.diagnose.waiting import graph, waits


@dataclass(slots=True)
class WaitGraph:
    """Nodes are indices: first `ranks` in order, then `pending` in order."""

    survey: Survey
    ranks: list[int]
    pending: list[PendingOp]
    votes: dict[int, Vote]
    successors: list[list[int]]
    predecessors: list[list[int]]
    node_of: dict[int, int]

    def op(self, node: int) -> PendingOp | None:
        index = node - len(self.ranks)
        return self.pending[index] if index >= 0 else None

    def rank(self, node: int) -> int | None:
        return self.ranks[node] if node < len(self.ranks) else None

    def presumed(self) -> list[list[int]]:
        """Successors, with each rank that cannot tell waiting wherever it is waited for."""
        found = [list(children) for children in self.successors]
        for index, op in enumerate(self.pending):
            for rank in op.unknown:
                node = self.node_of[rank]
                if not self.successors[node]:
                    found[node].append(len(self.ranks) + index)
        return found

    def ranks_among(self, nodes: set[int]) -> set[int]:
        size = len(self.ranks)
        return {self.ranks[node] for node in nodes if node < size}


def build(survey: Survey) -> WaitGraph:
    pending = _pending(survey)
    votes = mismatch.mark(survey, pending)
    fronts = waits.fronts(pending)
    queued = waits.queues(survey, pending, fronts)
    edges = waits.of_ranks(survey, pending, fronts, queued)
    waits.release_full_queues(survey, pending, edges)
    waits.hold_behind(pending, fronts, edges, queued)
    ranks = sorted(_touched(pending, fronts))
    node_of = {rank: node for node, rank in enumerate(ranks)}
    size = len(ranks)
    successors = [[size + index for index in edges.get(rank, ())] for rank in ranks]
    for op in pending:
        holders = () if op.is_mismatch else op.absent + op.holding or op.unknown
        successors.append([node_of[rank] for rank in holders])
    return WaitGraph(survey, ranks, pending, votes, successors, graph.reverse(successors), node_of)


def _pending(survey: Survey) -> list[PendingOp]:
    """All pending operations in the order of their sort keys; the collectives come in it."""
    found = collectives.pending(survey)
    others = [*p2p.pending(survey), *monitored.pending(survey), *rendezvous.pending(survey)]
    ras.refine(survey, found)
    # Counts tell more than stacks do; where they agree, the stacks may still tell something.
    others += ras.pending(survey, [*found, *others]) or seen.pending(survey)
    if not others:
        return found
    others.sort(key=attrgetter("sort_key"))
    return sorted([*found, *others], key=attrgetter("form", "gid"))


def blockers(op: PendingOp) -> tuple[int, ...]:
    return op.absent + op.unknown + op.holding


def _touched(pending: list[PendingOp], waiting: Iterable[int]) -> set[int]:
    ranks = set(waiting)
    for op in pending:
        ranks.update(op.absent, op.unknown, op.holding)
    return ranks
