"""From the roots of the wait-for graph to who is to blame: kind, culprits, weight, who waits."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass

from hangwatch_server.diagnose.blame import conditions, stalled
from hangwatch_server.diagnose.pending import blind
from hangwatch_server.diagnose.pending.ops import Form, PendingOp
from hangwatch_server.diagnose.process import Fate
from hangwatch_server.diagnose.survey import Survey
from hangwatch_server.diagnose.waiting.roots import Root
from hangwatch_server.diagnose.waiting.wait_graph import WaitGraph, blockers
from hangwatch_server.model import Condition, Culprit, Kind

_ROOT_WEIGHT = {Kind.STALLED_COLLECTIVE: 0.7}
_UNCERTAIN_WEIGHT = 0.15
_P2P = frozenset({"send", "recv", "isend", "irecv", "batch_isend_irecv"})


@dataclass(slots=True)
class Judged:
    """A root with its kind, the operation that speaks for it, and who waits."""

    root: Root
    kind: Kind
    op: PendingOp
    ranks: list[int]  # culprits, ascending
    victims: list[int]  # waiting ranks, ascending
    reason: str = ""  # why ranks inside a stalled collective are blamed

    @property
    def weight(self) -> float:
        factor = _ROOT_WEIGHT.get(self.kind, 1.0) if self.ranks else 0.7
        certain = 1.0 if self.root.is_certain or not self.ranks else _UNCERTAIN_WEIGHT
        return factor * certain * (len(self.victims) + len(self.ranks))


def judge(waiting: WaitGraph, found: Sequence[Root]) -> list[Judged]:
    """Roots, the weightiest first; each knows how many rivals of like weight it has."""
    judged = [_judge(waiting, root) for root in found]
    judged.sort(key=lambda item: (-item.weight, item.kind.value, item.op.sort_key))
    weights = sorted(item.weight for item in judged)
    for item in judged:
        lighter = bisect.bisect_left(weights, 0.5 * item.weight)
        item.root.competing = len(weights) - lighter - 1
    return judged


def culprits_of(looked: Survey, item: Judged) -> tuple[Culprit, ...]:
    stacks = looked.stacks_of(item.op.have)
    found: list[Culprit] = []
    for rank in item.ranks[: looked.settings.max_culprits]:
        view = looked.view(rank)
        beat = view.beat if view is not None else None
        is_queued = _is_queued(item.root, rank)
        state = conditions.of_rank(looked, rank, stacks, is_queued=is_queued)
        if state.condition is Condition.NODE_LOST and blind.is_blind(looked, rank):
            detail = "its agent is not heard, but its collectives went on after that"
            state = state._replace(condition=Condition.UNKNOWN, detail=detail)
        if item.root.ops and state.condition is Condition.UNKNOWN:
            state = state._replace(condition=Condition.IN_COLLECTIVE)
        found.append(
            Culprit(
                rank=rank,
                node=view.node if view is not None else "",
                pid=beat.pid if beat is not None else None,
                gpu=beat.gpu.index if beat is not None and beat.gpu is not None else None,
                condition=state.condition,
                where=state.where,
                detail=state.detail,
            )
        )
    return tuple(found)


def _judge(waiting: WaitGraph, root: Root) -> Judged:
    ranks = sorted(set(root.ranks))
    op = _primary(root, ranks)
    kind = _kind(waiting.survey, root, ranks)
    reason = ""
    if kind is Kind.STALLED_COLLECTIVE and not ranks:
        suspects, reason = stalled.suspects(waiting.survey, op)
        ranks = list(suspects)
    reached = waiting.ranks_among(root.reached) | (set(op.have) if root.ops else set())
    victims = sorted(reached.difference(ranks))
    return Judged(root, kind, op, ranks, victims, reason)


def _is_queued(root: Root, rank: int) -> bool:
    """Whether its GPU has not begun a call that it holds up."""
    entries = (op.have.get(rank) for op in root.feeds if rank in op.holding)
    return any(entry is not None and entry.is_started is False for entry in entries)


def _primary(root: Root, ranks: Sequence[int]) -> PendingOp:
    """The operation to speak of: most culprits missing, then most ranks waiting in it.

    Ages do not count: they differ by a tick from look to look, and the finding's key must not.
    """
    missing = set(ranks)
    candidates = root.ops or root.feeds
    return min(
        candidates,
        key=lambda op: (
            -len(missing.intersection(blockers(op))),
            -len(op.have),
            op.sort_key,
        ),
    )


def _kind(looked: Survey, root: Root, ranks: Sequence[int]) -> Kind:
    if root.vote is not None:
        return Kind.MISMATCH
    if root.ops and ranks:
        return Kind.DEADLOCK
    forms = {op.form for op in (*root.ops, *root.feeds)}
    if forms == {Form.RENDEZVOUS}:
        return Kind.INCOMPLETE_RENDEZVOUS
    if not ranks:
        return Kind.STALLED_COLLECTIVE
    if forms == {Form.P2P} or (forms == {Form.SEEN} and root.feeds[0].op in _P2P):
        return Kind.UNMATCHED_P2P
    return Kind.STALLED_COLLECTIVE if _entered_all(looked, root, ranks) else Kind.MISSING_RANKS


def _entered_all(looked: Survey, root: Root, ranks: Sequence[int]) -> bool:
    """The culprits are in the call and block it from inside; the dead count as missing."""
    never = {rank for op in root.feeds for rank in (*op.absent, *op.unknown)}
    return not never.intersection(ranks) and all(looked.fate(r) is not Fate.GONE for r in ranks)
