"""The roots of the wait-for graph: what holds others up and is itself held up by nobody.

Sinks of the strongly connected components: a rank alone holds others up, an operation alone has all
its members, several nodes are a cycle. Ranks that hold up the same victims are one root, and so are
ranks of one node that cannot go on for the same reason. A rank of which only its silence is known
is a root of its own where nothing else explains the wait, and otherwise a note at the root that
does: a silent rank is presumed to wait wherever its peers do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from hangwatch_server.diagnose.calls import order
from hangwatch_server.diagnose.calls.signature import Vote
from hangwatch_server.diagnose.pending import blind
from hangwatch_server.diagnose.pending.ops import PendingOp
from hangwatch_server.diagnose.process import Fate
from hangwatch_server.diagnose.survey import Survey
from hangwatch_server.diagnose.waiting import graph
from hangwatch_server.diagnose.waiting.wait_graph import WaitGraph

_MAX_ASKED = 256  # silent ranks of which it is worked out whether their groups went on
_AT_ONCE_S = 5.0  # from the loss of a machine to the first wait for it: a step, and its heartbeat


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
    _fed: set[int] = field(default_factory=set)  # ids of `feeds`: a root can have thousands

    def __post_init__(self) -> None:
        self._fed.update(map(id, self.feeds))

    def feed(self, ops: Iterable[PendingOp]) -> None:
        """Add the operations that are not among its feeds yet."""
        fresh = [op for op in ops if id(op) not in self._fed]
        self.feeds.extend(fresh)
        self._fed.update(map(id, fresh))


def of(waiting: WaitGraph) -> list[Root]:
    """Every root with its victims, the certain ones first."""
    named = {rank for op in waiting.pending for rank in op.absent + op.holding}
    certain: list[int] = []
    doubtful: list[int] = []
    found: list[Root] = []
    for members in graph.sinks(waiting.successors, waiting.predecessors):
        if len(members) > 1:
            found.append(_cycle_root(waiting, members))
        elif waiting.op(members[0]) is not None:
            found.append(_op_root(waiting, members[0]))
        elif waiting.predecessors[members[0]]:
            is_certain = waiting.rank(members[0]) in named
            (certain if is_certain else doubtful).append(members[0])
    found.extend(_rank_roots(waiting, certain, is_certain=True))
    if doubtful:
        found.extend(_proven_cycles(waiting, found))
    presumed = _presumed(waiting, set(certain))
    noted: set[int] = set()
    for root in found if presumed else ():
        noted |= _add_notes(waiting, root, presumed)
    rest = [node for node in doubtful if node not in noted]
    for root in _rank_roots(waiting, rest, is_certain=False):
        _add_whole_nodes(waiting, root)
        found.append(root)
    return found


def _cycle_root(waiting: WaitGraph, members: list[int]) -> Root:
    ops = [op for node in members if (op := waiting.op(node)) is not None]
    ranks = [rank for node in members if (rank := waiting.rank(node)) is not None]
    ranks = order.blamed(waiting.survey, ops, ranks) or ranks
    return Root(ranks, ops, ops, graph.reach(waiting.predecessors, members), True)


def _proven_cycles(waiting: WaitGraph, found: list[Root]) -> Iterator[Root]:
    """Cycles that lead on to silent ranks alone: who waits for all of a cycle is stuck in it."""
    explained = set().union(*(root.reached for root in found))
    for members in graph.cycles(waiting.successors, waiting.predecessors):
        if explained.isdisjoint(members):
            root = _cycle_root(waiting, members)
            explained |= root.reached
            yield root


def _op_root(waiting: WaitGraph, node: int) -> Root:
    op = waiting.op(node)
    assert op is not None  # the caller has looked
    vote = waiting.votes.get(node - len(waiting.ranks))
    reached = graph.reach(waiting.predecessors, [node])
    ranks = list(vote.odd) if vote is not None else []
    return Root(ranks, [op], [op], reached, vote is not None, vote)


def _rank_roots(waiting: WaitGraph, nodes: list[int], *, is_certain: bool) -> list[Root]:
    """One root for ranks that hold up the same victims, or are lost with the same node."""
    limit = waiting.survey.settings.max_sinks
    lesser = set() if is_certain else _lesser(waiting, nodes)
    order = sorted(nodes, key=lambda n: (n in lesser, -len(waiting.predecessors[n]), n))
    found: list[Root] = []
    by_cause: dict[tuple[str, Fate], Root] = {}
    for node in order:
        rank = waiting.ranks[node]
        cause = _cause(waiting.survey, rank)
        beside = _beside(waiting, node)
        near = next((root for root in found if not root.reached.isdisjoint(beside)), None)
        same = by_cause.get(cause) if cause is not None else None
        if near is not None and same is not None and same is not near:
            _absorb(near, same)
            found = [root for root in found if root is not same]
            by_cause = {key: near if root is same else root for key, root in by_cause.items()}
        near = near or same
        if near is None and len(found) >= limit:
            near = found[0]
        if near is None:
            reached = graph.reach(waiting.predecessors, [node])
            near = Root([rank], [], _feeds(waiting, node), reached, is_certain)
            found.append(near)
        elif node in lesser and waiting.node_of[near.ranks[0]] not in lesser:
            near.notes.append(rank)
        else:
            _join(waiting, near, node)
        if cause is not None:
            by_cause.setdefault(cause, near)
    return found


def _absorb(root: Root, other: Root) -> None:
    root.ranks.extend(other.ranks)
    root.notes.extend(other.notes)
    root.feed(other.feeds)
    root.reached |= other.reached


def _lesser(waiting: WaitGraph, nodes: list[int]) -> set[int]:
    """Of several silent ranks the lesser suspects: those that went on after they fell silent, those
    whose node speaks of others, where some other node is lost as a whole, and those that had been
    silent for long when all came to stand, where others fell silent just then."""
    if len(nodes) < 2:
        return set()
    asked = nodes[:_MAX_ASKED]
    found = {node for node in asked if blind.is_blind(waiting.survey, waiting.ranks[node])}
    for less in (_beside_the_heard(waiting, asked), _long_silent(waiting, asked)):
        if not found.union(less).issuperset(asked):
            found |= less
    return found


def _long_silent(waiting: WaitGraph, nodes: list[int]) -> set[int]:
    """Ranks that fell silent well before the first wait for one of `nodes` began."""
    waits = (op.stalled_s for node in nodes for op in _feeds(waiting, node))
    since_s = max(waits, default=0.0) + _AT_ONCE_S
    views = {node: waiting.survey.view(waiting.ranks[node]) for node in nodes}
    return {n for n, view in views.items() if view and view.beat and view.age_s > since_s}


def _beside_the_heard(waiting: WaitGraph, nodes: list[int]) -> set[int]:
    looked = waiting.survey
    heard = {view.node for rank in looked.alive if (view := looked.view(rank)) is not None}
    heard.add("")  # no agent ever spoke of the rank: that is no machine that was lost
    views = {node: looked.view(waiting.ranks[node]) for node in nodes}
    return {node for node, view in views.items() if view is None or view.node in heard}


def _cause(survey: Survey, rank: int) -> tuple[str, Fate] | None:
    """The node and its trouble, for a rank that cannot go on by itself."""
    view = survey.view(rank)
    fate = survey.fate(rank)
    return (view.node, fate) if view is not None and view.node and fate is not Fate.ALIVE else None


def _add_whole_nodes(waiting: WaitGraph, root: Root) -> None:
    """Name a lost machine with all its ranks that some call behind it may be waiting for.

    An edge to such a rank may be missing where others hold that call up for certain.
    """
    looked = waiting.survey
    lost = {_cause(looked, rank) for rank in root.ranks} - {None}
    reached = (op for node in root.reached if (op := waiting.op(node)) is not None)
    beside = {r for op in reached for r in op.unknown if _cause(looked, r) in lost}
    for rank in sorted(beside.difference(root.ranks, root.notes)):
        _join(waiting, root, waiting.node_of[rank])


def _presumed(waiting: WaitGraph, certain: set[int]) -> dict[int, list[int]]:
    """Operation node -> nodes of the ranks that may wait in it, for all that can be told."""
    size = len(waiting.ranks)
    found: dict[int, list[int]] = {}
    for index, op in enumerate(waiting.pending):
        if op.unknown:
            nodes = [waiting.node_of[rank] for rank in op.unknown]
            nodes = [node for node in nodes if node not in certain]
            found[size + index] = [node for node in nodes if not waiting.successors[node]]
    return {node: ranks for node, ranks in found.items() if ranks}


def _add_notes(waiting: WaitGraph, root: Root, presumed: dict[int, list[int]]) -> set[int]:
    """Let a root that names somebody explain the waits for silent ranks behind it; their nodes."""
    if not root.ranks:
        return set()
    noted: set[int] = set()
    fresh: Iterable[int] = root.reached
    while True:
        silent = {node for op in fresh if op in presumed for node in presumed[op]} - noted
        if not silent:
            break
        noted |= silent
        behind = graph.reach(waiting.predecessors, silent) - root.reached
        root.reached |= behind
        fresh = behind
    root.reached -= noted
    root.notes.extend(sorted(waiting.ranks[node] for node in noted))
    return noted


def _join(waiting: WaitGraph, root: Root, node: int) -> None:
    root.ranks.append(waiting.ranks[node])
    root.feed(_feeds(waiting, node))
    graph.grow(waiting.predecessors, root.reached, (node,))


def _beside(waiting: WaitGraph, node: int) -> list[int]:
    """What waits for a rank, and who waits in that: whose root reaches one of them is its too."""
    before = waiting.predecessors
    return [*before[node], *(waiter for op_node in before[node] for waiter in before[op_node])]


def _feeds(waiting: WaitGraph, node: int) -> list[PendingOp]:
    return [op for n in waiting.predecessors[node] if (op := waiting.op(n)) is not None]
