"""From the roots of the wait-for graph to findings: kind, culprits, confidence, words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hangwatch_server import ranges
from hangwatch_server.diagnose import (
    certainty,
    conditions,
    evidence,
    hints,
    ops,
    paths,
    sentences,
)
from hangwatch_server.diagnose.coverage import coverage
from hangwatch_server.diagnose.ops import Form, PendingOp
from hangwatch_server.diagnose.process import Fate
from hangwatch_server.diagnose.survey import Survey
from hangwatch_server.diagnose.wait_graph import Root, WaitGraph, blockers
from hangwatch_server.model import Condition, Culprit, Finding, Kind, WaitEdge

_ROOT_WEIGHT = {Kind.STALLED_COLLECTIVE: 0.7}
_UNCERTAIN_WEIGHT = 0.4


@dataclass(slots=True)
class Judged:
    """A root with its kind, the operation that speaks for it, and who waits."""

    root: Root
    kind: Kind
    op: PendingOp
    ranks: list[int]  # culprits, ascending
    victims: list[int]  # waiting ranks, ascending

    @property
    def weight(self) -> float:
        factor = _ROOT_WEIGHT.get(self.kind, 1.0) if self.ranks else 0.7
        certain = 1.0 if self.root.is_certain or not self.ranks else _UNCERTAIN_WEIGHT
        return factor * certain * (len(self.victims) + len(self.ranks))


def judge(waiting: WaitGraph, roots: Sequence[Root]) -> list[Judged]:
    """Roots, the weightiest first; each knows how many rivals of like weight it has."""
    judged = [_judge(waiting, root) for root in roots]
    judged.sort(key=lambda item: (-item.weight, item.kind.value, item.op.sort_key))
    for item in judged:
        item.root.competing = sum(
            1 for other in judged if other is not item and other.weight >= 0.5 * item.weight
        )
    return judged


def finding(waiting: WaitGraph, item: Judged) -> Finding:
    looked = waiting.survey
    culprits = culprits_of(looked, item)
    group = looked.snapshot.groups.get(item.op.gid)
    by_rank = {culprit.rank: culprit for culprit in culprits}
    start = _representative(waiting, item)
    shown_sides = evidence.sides(looked, item.root, item.op)
    case = hints.Case(
        looked,
        item.kind,
        item.op,
        culprits,
        hints.stacks_of(looked, list(item.op.have)),
        frozenset(item.root.vote.by_signature) if item.root.vote else frozenset(),
    )
    return Finding(
        kind=item.kind,
        summary=_summary(looked, item, culprits, [side.call for side in shown_sides]),
        confidence=certainty.of(waiting, item.root, item.kind, item.op, item.ranks, item.victims),
        group=ops.group_ref(group),
        seq=item.op.seq if item.op.form is Form.COLLECTIVE else None,
        op=item.op.op,
        culprits=culprits,
        culprit_ranks=ranges.text(item.ranks),
        waiting=ranges.text(item.victims),
        path=paths.to_root(waiting, start, item.root, by_rank) if start is not None else (),
        edges=edges(waiting, item),
        cycle=paths.cycle(waiting, item.root) if item.kind is Kind.DEADLOCK else (),
        sides=shown_sides,
        evidence=evidence.of(looked, item.root, item.op, item.ranks),
        hints=hints.of(case),
        coverage=coverage(looked.snapshot),
        is_hard=certainty.is_hard(waiting, item.root, item.kind, item.op, item.ranks),
        stalled_s=item.op.stalled_s,
        key=f"{item.kind.value}|{item.op.gid}|{item.op.seq}|{ranges.text(item.ranks)}",
    )


def edges(waiting: WaitGraph, item: Judged) -> tuple[WaitEdge, ...]:
    """Who waits for whom, nearest to the root first."""
    near = {id(op) for op in (*item.root.ops, *item.root.feeds)}
    size = len(waiting.ranks)
    mine = [
        op
        for index, op in enumerate(waiting.pending)
        if size + index in item.root.reached or id(op) in near
    ]
    mine.sort(key=lambda op: (id(op) not in near, -len(op.have)))
    return tuple(_edge(waiting.survey, op) for op in mine[: waiting.survey.settings.max_edges])


def _edge(looked: Survey, op: PendingOp) -> WaitEdge:
    stack = next((s for rank in list(op.have)[:64] if (s := looked.stack(rank))), None)
    return WaitEdge(
        ranks=ranges.text(op.have),
        call=ops.label(op, looked.snapshot.groups.get(op.gid)),
        missing=ranges.text(blockers(op)),
        where=stack.where if stack is not None else "",
    )


def _judge(waiting: WaitGraph, root: Root) -> Judged:
    ranks = sorted(set(root.ranks))
    op = _primary(root, ranks)
    reached = waiting.ranks_among(root.reached) | (set(op.have) if root.ops else set())
    victims = sorted(reached.difference(ranks))
    return Judged(root, _kind(waiting.survey, root, ranks), op, ranks, victims)


def _primary(root: Root, ranks: Sequence[int]) -> PendingOp:
    """The operation to speak of: most culprits missing, then most ranks waiting in it."""
    missing = set(ranks)
    candidates = root.ops or root.feeds
    return min(
        candidates,
        key=lambda op: (
            -len(missing.intersection(blockers(op))),
            -len(op.have),
            -op.stalled_s,
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
    if forms == {Form.P2P}:
        return Kind.UNMATCHED_P2P
    return Kind.STALLED_COLLECTIVE if _entered_all(looked, root, ranks) else Kind.MISSING_RANKS


def _entered_all(looked: Survey, root: Root, ranks: Sequence[int]) -> bool:
    """The culprits are in the call and block it from inside; the dead count as missing."""
    never = {rank for op in root.feeds for rank in (*op.absent, *op.unknown)}
    return not never.intersection(ranks) and all(looked.fate(r) is not Fate.GONE for r in ranks)


def culprits_of(looked: Survey, item: Judged) -> tuple[Culprit, ...]:
    stacks = hints.stacks_of(looked, list(item.op.have))
    found: list[Culprit] = []
    for rank in item.ranks[: looked.settings.max_culprits]:
        view = looked.view(rank)
        beat = view.beat if view is not None else None
        is_queued = rank in item.op.holding
        state = conditions.of_rank(looked, rank, stacks, is_queued=is_queued)
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


def _summary(
    looked: Survey, item: Judged, culprits: Sequence[Culprit], calls: Sequence[str]
) -> str:
    group = looked.snapshot.groups.get(item.op.gid)
    is_shared = bool(item.root.ops)  # culprits wait too
    number = len(item.victims) + (len(item.ranks) if is_shared else 0)
    if item.root.vote is not None and item.root.vote.right is None:
        by_side = [
            f"rank {ranges.text(ranks)} in {call}"
            for ranks, call in zip(_sides(item), calls, strict=True)
        ]
        call = sentences.of_call(item.op, group)
        return sentences.tie(call, by_side, number, item.op.stalled_s)
    inside = set(item.ranks) & set(item.op.holding)
    return sentences.summary(
        item.kind, item.op, group, culprits, item.ranks, number, entered=len(inside)
    )


def _sides(item: Judged) -> list[tuple[int, ...]]:
    assert item.root.vote is not None  # the caller has looked
    return sorted(item.root.vote.by_signature.values(), key=lambda ranks: (-len(ranks), ranks))


def _representative(waiting: WaitGraph, item: Judged) -> int | None:
    """The lowest waiting rank whose way to the root is known."""
    for rank in item.victims or item.ranks:
        if waiting.successors[waiting.node_of[rank]]:
            return rank
    return None
