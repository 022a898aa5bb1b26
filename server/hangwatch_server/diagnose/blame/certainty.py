"""Which evidence a root has: its confidence, and whether it is hard."""

from __future__ import annotations

from collections.abc import Sequence

from hangwatch_server.diagnose import standing
from hangwatch_server.diagnose.blame import confidence, queued
from hangwatch_server.diagnose.blame.culprits import Judged
from hangwatch_server.diagnose.pending import blind, seen
from hangwatch_server.diagnose.pending.ops import PendingOp
from hangwatch_server.diagnose.process import Fate
from hangwatch_server.diagnose.survey import Survey
from hangwatch_server.diagnose.waiting import paths, waits
from hangwatch_server.diagnose.waiting.roots import Root
from hangwatch_server.diagnose.waiting.wait_graph import WaitGraph
from hangwatch_server.model import Activity, Kind, Link

_UNABLE = frozenset({Fate.HELD, Fate.STOPPED})
_WAITING = frozenset({Activity.COLLECTIVE, Activity.RENDEZVOUS})
_MAX_LOOKED_AT = 64


def of(waiting: WaitGraph, item: Judged) -> float:
    """Independent evidence, lessened by rivals, by what was not seen and by what contradicts it."""
    looked = waiting.survey
    return confidence.combine(
        _evidence(waiting, item),
        competing=item.root.competing,
        factor=_guess_factor(waiting, item)
        * _contradiction_factor(looked, item)
        * (confidence.BY_OTHERS if item.op.source else 1.0)
        * _age_factor(waiting, item)
        * confidence.seen(looked.reporting, looked.snapshot.world_size),
    )


def _evidence(waiting: WaitGraph, item: Judged) -> list[float]:
    looked, root, ranks = waiting.survey, item.root, item.ranks[:_MAX_LOOKED_AT]
    if root.vote is not None:
        return [confidence.TIE if root.vote.right is None else confidence.MISMATCH]
    if item.kind is Kind.DEADLOCK:
        unseen = [rank for rank in ranks if not _is_seen_waiting(looked, rank)]
        are_seen = not unseen or queued.are_stuck(looked, root, unseen)
        return [confidence.CYCLE if are_seen else confidence.CYCLE_BY_COUNTERS]
    if not ranks:
        is_start = item.kind is Kind.INCOMPLETE_RENDEZVOUS
        if item.op.unplaced and not is_start:
            return [confidence.NOBODY_KNOWN_MISSING]
        return [confidence.RENDEZVOUS if is_start else confidence.EVERYBODY_ARRIVED]
    proofs = [min(_proof(looked, root, rank) for rank in ranks)]
    if root.is_certain and _explains_most(waiting, item.ranks, item.victims):
        proofs.append(confidence.EXPLAINS_MOST)
    return proofs


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
    that is none. A stack tells, and so does a wrapped call that the rank is inside of, or the queue
    of a rank that waits for its GPU.
    """
    looked = waiting.survey
    ranks = {step.rank for step in paths.cycle(waiting, root)}
    unseen = [rank for rank in ranks if not _is_blocked(looked, root, rank)]
    return bool(ranks) and (not unseen or queued.are_stuck(looked, root, unseen))


def _is_blocked(looked: Survey, root: Root, rank: int) -> bool:
    return _is_seen_waiting(looked, rank) or any(
        waits.is_blocking(looked, op, rank) for op in root.ops if rank in op.have
    )


def _proof(looked: Survey, root: Root, rank: int) -> float:
    """The best single evidence that this rank is the one that is waited for."""
    fate = looked.fate(rank)
    view = looked.view(rank)
    if fate is Fate.GONE:
        return confidence.DEAD
    if rank in looked.failed_gpus:
        return confidence.FAULTY_GPU
    if root.ops:
        return confidence.UNABLE if fate in _UNABLE else confidence.PARTLY_FINISHED
    is_in_any = any(rank in op.absent or rank in op.holding for op in root.feeds)
    if not is_in_any:
        if view is None or view.beat is None or blind.is_blind(looked, rank):
            return confidence.SILENT_RANK
        return confidence.SILENT_NODE if view.link is Link.LOST else confidence.SILENT_RANK
    if fate in _UNABLE:
        return confidence.UNABLE
    stack = looked.stack(rank)
    if stack is not None and looked.is_outside(rank):
        is_frozen = stack.same_leaf_captures >= confidence.FROZEN_CAPTURES
        return confidence.FROZEN_OUTSIDE if is_frozen else confidence.SEEN_OUTSIDE
    return confidence.PROVEN_ABSENT


def _explains_most(waiting: WaitGraph, ranks: Sequence[int], victims: Sequence[int]) -> bool:
    held_up = {rank for op in waiting.pending for rank in op.have}
    held_up = held_up.difference(ranks, waiting.survey.silent)
    return len(held_up.intersection(victims)) >= confidence.MOST * len(held_up)


def _guess_factor(waiting: WaitGraph, item: Judged) -> float:
    """Several fronts and no stack to choose by make an edge a guess; so do stacks alone."""
    factor = confidence.BY_STACKS if seen.is_bare(waiting.survey) else 1.0
    if item.root.vote is not None or (not item.ranks and not item.root.ranks):
        return factor
    ranks = item.ranks if item.kind is Kind.DEADLOCK else list(item.op.have)[:_MAX_LOOKED_AT]
    nodes = (waiting.node_of[rank] for rank in ranks if rank in waiting.node_of)
    is_guess = any(
        waits.is_ambiguous(waiting.survey, waiting.ranks[node], waiting.successors[node])
        for node in nodes
    )
    return factor * (confidence.GUESSED_EDGE if is_guess else 1.0)


def _age_factor(waiting: WaitGraph, item: Judged) -> float:
    """A wait of a few seconds is everyday, whoever it is for, unless hard evidence explains it."""
    is_settled = item.op.stalled_s >= waiting.survey.settings.settled_after_s
    if is_settled or is_hard(waiting, item.root, item.kind, item.op, item.ranks):
        return 1.0
    return confidence.YOUNG


def _contradiction_factor(looked: Survey, item: Judged) -> float:
    """Counters that cannot be true together, or a culprit whose stack waits where none is seen."""
    if any(op.doubted for op in (item.op, *item.root.feeds)):
        return confidence.CONTRADICTED
    if item.kind is not Kind.MISSING_RANKS or not item.root.is_certain:
        return 1.0
    waits_unseen = (_is_seen_waiting(looked, rank) for rank in item.ranks[:_MAX_LOOKED_AT])
    return confidence.CONTRADICTED if any(waits_unseen) else 1.0


def _is_seen_waiting(looked: Survey, rank: int) -> bool:
    stack = looked.stack(rank)
    return stack is not None and stack.activity in _WAITING
