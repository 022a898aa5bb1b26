"""Why a rank waits, step by step to a culprit, and the cycle of a deadlock."""

from __future__ import annotations

from collections.abc import Mapping

from hangwatch_server.diagnose.pending import ops
from hangwatch_server.diagnose.waiting import graph
from hangwatch_server.diagnose.waiting.roots import Root
from hangwatch_server.diagnose.waiting.wait_graph import WaitGraph, blockers
from hangwatch_server.model import PathStep

MAX_FOR = 8


def to_root(
    waiting: WaitGraph, rank: int, root: Root, doing: Mapping[int, str]
) -> tuple[PathStep, ...]:
    """From `rank` to the nearest rank of `root`; what that one is `doing` is the last step."""
    start = waiting.node_of.get(rank)
    goals = frozenset(waiting.node_of[r] for r in root.ranks if r in waiting.node_of)
    if start is None:
        return ()
    if start in goals:
        return cycle(waiting, root, rank)
    if not goals or any(op.is_mismatch for op in root.ops):
        inside = {id(op) for op in root.ops}
        size = len(waiting.ranks)
        goals = frozenset(
            size + index for index, op in enumerate(waiting.pending) if id(op) in inside
        )
    nodes = graph.shortest_path(waiting.successors, start, goals)
    if not nodes and root.notes:
        nodes = graph.shortest_path(waiting.presumed(), start, goals)
    steps = _steps(waiting, nodes)
    last = waiting.rank(nodes[-1]) if nodes else None
    if last is not None and last in doing and not root.ops:
        steps.append(PathStep(rank=last, waits_in=doing[last], for_=()))
    return tuple(steps)


def cycle(waiting: WaitGraph, root: Root, rank: int | None = None) -> tuple[PathStep, ...]:
    """The shortest way from this rank, or the lowest of the root, back to itself."""
    start = waiting.node_of[min(root.ranks) if rank is None else rank]
    nodes = graph.shortest_path(waiting.successors, start, frozenset({start}))
    return tuple(_steps(waiting, nodes, narrow=True))


def _steps(waiting: WaitGraph, nodes: list[int], *, narrow: bool = False) -> list[PathStep]:
    """One step per rank -> operation pair on the way; `narrow` names only the next rank."""
    steps: list[PathStep] = []
    for place, node in enumerate(nodes):
        rank = waiting.rank(node)
        op = waiting.op(nodes[place + 1]) if place + 1 < len(nodes) else None
        if rank is None or op is None:
            continue
        following = waiting.rank(nodes[place + 2]) if place + 2 < len(nodes) else None
        missing = (following,) if narrow and following is not None else blockers(op)[:MAX_FOR]
        group = waiting.survey.snapshot.groups.get(op.gid)
        label = ops.label(op, group)
        if nodes[place + 1] not in waiting.successors[node]:
            label = f"{label} (presumed: it is not heard)"
        steps.append(PathStep(rank=rank, waits_in=label, for_=missing))
    return steps
