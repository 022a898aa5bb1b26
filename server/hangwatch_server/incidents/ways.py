"""The way from any waiting rank to a culprit, by what a stored verdict says of who waits for whom.

While a job lives its wait-for graph knows every way. A stored verdict keeps one of them whole, and
for the others the rows of its edges. Pure.
"""

from __future__ import annotations

from hangwatch_server import ranges
from hangwatch_server.diagnose.telling import sentences
from hangwatch_server.model import PathStep, Verdict, WaitEdge

MAX_STEPS = 32
MAX_FOR = 8


def way(verdict: Verdict, rank: int) -> tuple[PathStep, ...]:
    """Step by step to what a culprit does; () when the verdict does not tell.

    1. The stored way, from this rank on, where it passes through it.
    2. Else along the edges, those towards a culprit first, and on by the stored way where they
       meet it.
    """
    steps: list[PathStep] = []
    culprits = set(ranges.parse(verdict.culprit_ranks)) if verdict.culprit_ranks else set()
    passed: set[int] = set()
    while rank not in passed and len(steps) < MAX_STEPS:
        stored = _stored(verdict, rank)
        if stored:
            return (*steps, *stored)
        edge = _edge(verdict, rank, culprits)
        if edge is None:
            break
        passed.add(rank)
        missing = ranges.parse(edge.missing)
        following = _nearest(missing, culprits)
        shown = (following, *(one for one in missing if one != following))[:MAX_FOR]
        steps.append(PathStep(rank=rank, waits_in=edge.call, for_=tuple(shown)))
        rank = following
    if rank in culprits and rank not in passed and (steps or _is_told(verdict, rank)):
        steps.append(PathStep(rank=rank, waits_in=_doing(verdict, rank), for_=()))
    return tuple(steps)


def _stored(verdict: Verdict, rank: int) -> tuple[PathStep, ...]:
    path = (*verdict.path, *verdict.cycle)
    place = next((index for index, step in enumerate(path) if step.rank == rank), None)
    if place is None:
        return ()
    return verdict.path[place:] if place < len(verdict.path) else _turned(verdict.cycle, rank)


def _turned(cycle: tuple[PathStep, ...], rank: int) -> tuple[PathStep, ...]:
    """The cycle, beginning at this rank."""
    place = next(index for index, step in enumerate(cycle) if step.rank == rank)
    return (*cycle[place:], *cycle[:place])


def _edge(verdict: Verdict, rank: int, culprits: set[int]) -> WaitEdge | None:
    own = [edge for edge in verdict.edges if edge.missing and rank in ranges.parse(edge.ranks)]
    towards = (edge for edge in own if not culprits.isdisjoint(ranges.parse(edge.missing)))
    return next(towards, own[0] if own else None)


def _nearest(missing: tuple[int, ...], culprits: set[int]) -> int:
    return next((rank for rank in missing if rank in culprits), missing[0])


def _is_told(verdict: Verdict, rank: int) -> bool:
    return any(culprit.rank == rank for culprit in verdict.culprits)


def _doing(verdict: Verdict, rank: int) -> str:
    for culprit in verdict.culprits:
        if culprit.rank == rank:
            return sentences.doing(culprit)
    return "holds the others up"
