"""The bipartite AND wait-for graph of ranks and pending operations, and its roots.

An operation waits for every member that holds it up; a rank waits in its fronts. Sinks of the
strongly connected components are the roots: a rank alone holds others up, an operation alone has
all its members, several nodes are a cycle.
"""

from __future__ import annotations

from dataclasses import dataclass, field

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

    def ranks_among(self, nodes: set[int]) -> set[int]:
        size = len(self.ranks)
        return {self.ranks[node] for node in nodes if node < size}


@dataclass(slots=True)
class Root:
    """What holds others up: `ranks` (none where all have entered the operation) and its victims."""

    ranks: list[int]
    ops: list[PendingOp]  # inside the root itself: one for a stalled call, several for a cycle
    feeds: list[PendingOp]  # operations that wait directly for the ranks
    reached: set[int]  # nodes that wait for it, directly or not
    is_certain: bool
    vote: Vote | None = None
    notes: list[int] = field(default_factory=list)  # silent ranks that may also be missing
    competing: int = 0


def build(survey: Survey) -> WaitGraph:
    pending = [
        *collectives.pending(survey),
        *p2p.pending(survey),
        *monitored.pending(survey),
        *rendezvous.pending(survey),
    ]
    ras.refine(survey, pending)
    # Counts tell more than stacks do; where they agree, the stacks may still tell something.
    pending.extend(ras.pending(survey, pending) or seen.pending(survey))
    pending.sort(key=lambda op: op.sort_key)
    votes = mismatch.mark(survey, pending)
    ranks = sorted({rank for op in pending for rank in _touched(op)})
    node_of = {rank: node for node, rank in enumerate(ranks)}
    successors: list[list[int]] = [[] for _ in range(len(ranks) + len(pending))]
    for rank, indices in waits.of_ranks(survey, pending).items():
        successors[node_of[rank]] = [len(ranks) + index for index in indices]
    for index, op in enumerate(pending):
        if not op.is_mismatch:
            successors[len(ranks) + index] = [node_of[rank] for rank in blockers(op)]
    return WaitGraph(survey, ranks, pending, votes, successors, graph.reverse(successors), node_of)


def blockers(op: PendingOp) -> tuple[int, ...]:
    return op.absent + op.unknown + op.holding


def roots(waiting: WaitGraph) -> list[Root]:
    """Every root with its victims; ranks that hold up the same victims are one root."""
    alone: list[int] = []
    found: list[Root] = []
    for members in graph.sinks(waiting.successors):
        if len(members) > 1:
            found.append(_group_root(waiting, members))
        elif waiting.op(members[0]) is not None:
            found.append(_op_root(waiting, members[0]))
        elif waiting.predecessors[members[0]]:
            alone.append(members[0])
    found.extend(_rank_roots(waiting, alone))
    return found


def _touched(op: PendingOp) -> tuple[int, ...]:
    return (*op.have, *op.absent, *op.unknown, *op.holding)


def _group_root(waiting: WaitGraph, members: list[int]) -> Root:
    ops = [op for node in members if (op := waiting.op(node)) is not None]
    ranks = [rank for node in members if (rank := waiting.rank(node)) is not None]
    return Root(ranks, ops, ops, graph.reach(waiting.predecessors, members), True)


def _op_root(waiting: WaitGraph, node: int) -> Root:
    op = waiting.op(node)
    assert op is not None  # the caller has looked
    vote = waiting.votes.get(node - len(waiting.ranks))
    reached = graph.reach(waiting.predecessors, [node])
    ranks = list(vote.odd) if vote is not None else []
    return Root(ranks, [op], [op], reached, vote is not None, vote)


def _rank_roots(waiting: WaitGraph, nodes: list[int]) -> list[Root]:
    """Certain ranks first; an uncertain one whose victims a certain one explains is only a note."""
    limit = waiting.survey.settings.max_sinks
    order = sorted(
        nodes, key=lambda n: (not _is_certain(waiting, n), -len(waiting.predecessors[n]), n)
    )
    found: list[Root] = []
    for node in order:
        is_certain = _is_certain(waiting, node)
        rank = waiting.ranks[node]
        near = next((root for root in found if _overlaps(waiting, root, node)), None)
        if near is None and len(found) >= limit:
            near = found[0]
        if near is None:
            reached = graph.reach(waiting.predecessors, [node])
            found.append(Root([rank], [], _feeds(waiting, node), reached, is_certain))
        elif near.is_certain and not is_certain:
            near.notes.append(rank)
        else:
            _join(waiting, near, node)
    return found


def _join(waiting: WaitGraph, root: Root, node: int) -> None:
    root.ranks.append(waiting.ranks[node])
    known = {id(op) for op in root.feeds}
    root.feeds.extend(op for op in _feeds(waiting, node) if id(op) not in known)
    fresh = [n for n in (node, *waiting.predecessors[node]) if n not in root.reached]
    if fresh:
        root.reached |= graph.reach(waiting.predecessors, fresh)


def _overlaps(waiting: WaitGraph, root: Root, node: int) -> bool:
    """Whether some rank waits for both: a shared operation, or a waiter of its operations."""
    for op_node in waiting.predecessors[node]:
        if op_node in root.reached:
            return True
        if any(rank_node in root.reached for rank_node in waiting.predecessors[op_node]):
            return True
    return False


def _feeds(waiting: WaitGraph, node: int) -> list[PendingOp]:
    return [op for n in waiting.predecessors[node] if (op := waiting.op(n)) is not None]


def _is_certain(waiting: WaitGraph, node: int) -> bool:
    rank = waiting.ranks[node]
    return any(rank in op.absent or rank in op.holding for op in _feeds(waiting, node))
