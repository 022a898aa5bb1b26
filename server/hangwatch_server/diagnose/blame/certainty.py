"""Which evidence a root has: its confidence, and whether it is hard."""

from __future__ import annotations

from collections.abc import Sequence

from hangwatch_server.diagnose import standing
from hangwatch_server.diagnose.blame import confidence
from hangwatch_server.diagnose.pending import seen
from hangwatch_server.diagnose.pending.ops import PendingOp
from hangwatch_server.diagnose.process import Fate
from hangwatch_server.diagnose.survey import Survey
from hangwatch_server.diagnose.waiting import paths, waits
from hangwatch_server.diagnose.waiting.wait_graph import Root, WaitGraph
from hangwatch_server.model import Activity, Kind, Link

_UNABLE = frozenset({Fate.HELD, Fate.STOPPED})
_WAITING = frozenset({Activity.COLLECTIVE, Activity.RENDEZVOUS})
_MAX_LOOKED_AT = 64


def of(
    waiting: WaitGraph,
    root: Root,
    kind: Kind,
    op: PendingOp,
    ranks: Sequence[int],
    victims: Sequence[int],
) -> float:
    looked = waiting.survey
    if root.vote is not None:
        is_tie = root.vote.right is None
        return confidence.combine(
            [confidence.TIE if is_tie else confidence.MISMATCH],
            competing=root.competing,
            factor=_source_factor(op),
        )
    if kind is Kind.DEADLOCK:
        are_seen = all(_is_seen_waiting(looked, rank) for rank in ranks[:_MAX_LOOKED_AT])
        weight = confidence.CYCLE if are_seen else confidence.CYCLE_BY_COUNTERS
        return confidence.combine(
            [weight], competing=root.competing, factor=_guess_factor(waiting, ranks)
        )
    if not ranks:
        weight = (
            confidence.RENDEZVOUS
            if kind is Kind.INCOMPLETE_RENDEZVOUS
            else confidence.EVERYBODY_ARRIVED
        )
        factor = confidence.BY_STACKS if seen.is_bare(looked) else 1.0
        return confidence.combine([weight], competing=root.competing, factor=factor)
    proofs = [min(_proof(looked, root, rank) for rank in ranks[:_MAX_LOOKED_AT])]
    if root.is_certain and _explains_most(waiting, ranks, victims):
        proofs.append(confidence.EXPLAINS_MOST)
    return confidence.combine(
        proofs,
        competing=root.competing,
        factor=_guess_factor(waiting, list(op.have)[:_MAX_LOOKED_AT]) * _source_factor(op),
    )


def _source_factor(op: PendingOp) -> float:
    return confidence.BY_OTHERS if op.source else 1.0


def is_hard(
    waiting: WaitGraph, root: Root, kind: Kind, op: PendingOp, ranks: Sequence[int]
) -> bool:
    """True for a process gone, a mismatch or a cycle, once somebody in it is still for 2 s.

    A waiting rank that still calls on other groups is not held up yet, whatever its old front says.
    """
    looked = waiting.survey
    limit_s = looked.settings.hard_after_s
    if kind is Kind.DEADLOCK:
        return all(item.stalled_s >= limit_s for item in root.ops) and _is_proven(waiting, root)
    if op.stalled_s < limit_s or not any(_is_still(looked, rank, limit_s) for rank in op.have):
        return False
    if kind is Kind.MISMATCH:
        return True
    if kind is Kind.STALLED_COLLECTIVE:
        return any(rank in looked.failed_gpus for rank in ranks)
    return any(looked.fate(rank) is Fate.GONE for rank in ranks)


def _is_still(looked: Survey, rank: int, limit_s: float) -> bool:
    view = looked.view(rank)
    return view is not None and standing.quiet_s(view) >= limit_s


def _is_proven(waiting: WaitGraph, root: Root) -> bool:
    """Whether each rank of the shortest cycle is known to be blocked in its call.

    Fronts alone do not tell: an asynchronous one of a rank that is frozen elsewhere closes a cycle
    that is none. A stack tells, and so does a wrapped call that the rank is inside of.
    """
    looked = waiting.survey
    ranks = {step.rank for step in paths.cycle(waiting, root)}
    return bool(ranks) and all(
        _is_seen_waiting(looked, rank)
        or any(waits.is_blocking(looked, op, rank) for op in root.ops if rank in op.have)
        for rank in ranks
    )


def _proof(looked: Survey, root: Root, rank: int) -> float:
    """The best single evidence that this rank is the one that is waited for."""
    fate = looked.fate(rank)
    view = looked.view(rank)
    if fate is Fate.GONE:
        return confidence.DEAD
    is_in_any = any(rank in op.absent or rank in op.holding for op in root.feeds)
    if not is_in_any:
        if view is None or view.beat is None:
            return confidence.SILENT_RANK
        return confidence.SILENT_NODE if view.link is Link.LOST else confidence.SILENT_RANK
    if fate in _UNABLE or rank in looked.failed_gpus:
        return confidence.UNABLE
    stack = looked.stack(rank)
    if stack is not None and looked.is_outside(rank):
        is_frozen = stack.same_leaf_captures >= confidence.FROZEN_CAPTURES
        return confidence.FROZEN_OUTSIDE if is_frozen else confidence.SEEN_OUTSIDE
    return confidence.PROVEN_ABSENT


def _explains_most(waiting: WaitGraph, ranks: Sequence[int], victims: Sequence[int]) -> bool:
    stalled = {rank for op in waiting.pending for rank in op.have}.difference(ranks)
    return len(stalled.intersection(victims)) >= confidence.MOST * len(stalled)


def _guess_factor(waiting: WaitGraph, ranks: Sequence[int]) -> float:
    nodes = (waiting.node_of[rank] for rank in ranks if rank in waiting.node_of)
    is_guess = any(
        waits.is_ambiguous(waiting.survey, waiting.ranks[node], waiting.successors[node])
        for node in nodes
    )
    factor = confidence.BY_STACKS if seen.is_bare(waiting.survey) else 1.0
    return factor * (confidence.GUESSED_EDGE if is_guess else 1.0)


def _is_seen_waiting(looked: Survey, rank: int) -> bool:
    stack = looked.stack(rank)
    return stack is not None and stack.activity in _WAITING
