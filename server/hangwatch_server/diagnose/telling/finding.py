"""The finding as people and machines read it, made of a judged root: words, evidence, edges."""

from __future__ import annotations

import dataclasses
import heapq
from collections.abc import Collection, Sequence

from hangwatch_server import ranges
from hangwatch_server.diagnose.blame import certainty, culprits
from hangwatch_server.diagnose.blame.culprits import Judged
from hangwatch_server.diagnose.calls import shift
from hangwatch_server.diagnose.pending import ops
from hangwatch_server.diagnose.pending.ops import Form, PendingOp
from hangwatch_server.diagnose.survey import Survey
from hangwatch_server.diagnose.telling import evidence, hints, sentences
from hangwatch_server.diagnose.waiting import paths
from hangwatch_server.diagnose.waiting.wait_graph import WaitGraph
from hangwatch_server.model import Cause, Culprit, Evidence, Finding, Kind, PathStep, WaitEdge


def findings(waiting: WaitGraph, judged: Sequence[Judged]) -> tuple[Finding, ...]:
    """One finding per root; each also carries the culprits of the others that stand beside it."""
    made = [finding(waiting, item) for item in judged]
    settled_s = waiting.survey.settings.no_progress_after_s
    standing = [
        one
        for one, item in zip(made, judged, strict=True)
        if item.root.is_certain and one.culprits and one.stalled_s >= settled_s
    ]
    if len(standing) < 2:
        return tuple(made)
    return tuple(_beside(one, standing) if one in standing else one for one in made)


def _beside(mine: Finding, standing: Sequence[Finding]) -> Finding:
    others = [other for other in standing if other is not mine]
    named = set(ranges.parse(mine.culprit_ranks))
    besides = {c.rank: c for other in others for c in other.culprits if c.rank not in named}
    texts = (Evidence(kind="cause", text=f"Apart from that: {one.summary}") for one in others)
    summary = f"{mine.summary} {sentences.beside(sorted(besides))}" if besides else mine.summary
    return dataclasses.replace(
        mine,
        summary=summary,
        besides=tuple(besides.values()),
        causes=tuple(_cause(one) for one in others),
        evidence=(*mine.evidence, *texts),
    )


def _cause(one: Finding) -> Cause:
    return Cause(
        kind=one.kind,
        summary=one.summary,
        culprit_ranks=one.culprit_ranks,
        waiting=one.waiting,
        group=one.group,
        seq=one.seq,
        op=one.op,
    )


def finding(waiting: WaitGraph, item: Judged) -> Finding:
    looked = waiting.survey
    blamed = culprits.culprits_of(looked, item)
    group = looked.snapshot.groups.get(item.op.gid)
    start = _representative(waiting, item)
    shown_sides = evidence.sides(looked, item.root, item.op)
    case = hints.Case(
        looked,
        item.kind,
        item.op,
        blamed,
        looked.stacks_of(item.op.have),
        frozenset(item.root.vote.by_signature) if item.root.vote else frozenset(),
    )
    shifted = shift.of(looked, item.op, [*item.ranks, *_few(item.op.have)])
    words = [sentences.shift(shifted)] if shifted is not None else []
    summary = _summary(looked, item, blamed, [side.call for side in shown_sides])
    return Finding(
        kind=item.kind,
        summary=" ".join([summary, *words]),
        confidence=certainty.of(waiting, item),
        group=ops.group_ref(group),
        seq=item.op.seq if item.op.form is Form.COLLECTIVE else None,
        op=item.op.op,
        culprits=blamed,
        culprit_ranks=ranges.text(item.ranks),
        waiting=ranges.text(item.victims),
        path=_way(waiting, start, item, blamed) if start is not None else (),
        edges=edges(waiting, item),
        cycle=paths.cycle(waiting, item.root) if item.kind is Kind.DEADLOCK else (),
        sides=shown_sides,
        evidence=(
            *evidence.of(looked, item),
            *(Evidence(kind="calls", text=text) for text in words),
        ),
        hints=hints.of(case),
        coverage=looked.coverage(),
        is_hard=certainty.is_hard(waiting, item.root, item.kind, item.op, item.ranks),
        is_presumed=bool(item.ranks) and not item.root.is_certain,
        stalled_s=item.op.stalled_s,
        shift=shifted,
        key=f"{item.kind.value}|{item.op.gid}|{item.op.seq}|{ranges.text(item.ranks)}",
    )


def _few(ranks: Collection[int]) -> Collection[int]:
    """Ranks that wait almost alone may themselves be the ones out of step."""
    return ranks if len(ranks) <= shift.MOST_CANDIDATES else ()


def path(waiting: WaitGraph, rank: int, item: Judged) -> tuple[PathStep, ...]:
    """Why this rank waits, step by step to what a culprit does."""
    return _way(waiting, rank, item, culprits.culprits_of(waiting.survey, item))


def _way(
    waiting: WaitGraph, rank: int, item: Judged, blamed: Sequence[Culprit]
) -> tuple[PathStep, ...]:
    doing = {culprit.rank: sentences.doing(culprit) for culprit in blamed}
    return paths.to_root(waiting, rank, item.root, doing)


def edges(waiting: WaitGraph, item: Judged) -> tuple[WaitEdge, ...]:
    """Who waits for whom, nearest to the root first; no calls that all only have in a queue."""
    size, before = len(waiting.ranks), waiting.predecessors
    near = {id(op) for op in (*item.root.ops, *item.root.feeds)}

    def far_and_small(node: int) -> tuple[bool, int, int]:
        op = waiting.pending[node - size]
        return id(op) not in near, -len(op.have), node

    waited_in = (node for node in item.root.reached if node >= size and before[node])
    shown = heapq.nsmallest(waiting.survey.settings.max_edges, waited_in, key=far_and_small)
    return tuple(_edge(waiting, node) for node in shown)


def _edge(waiting: WaitGraph, node: int) -> WaitEdge:
    looked, op = waiting.survey, waiting.pending[node - len(waiting.ranks)]
    stack = next((s for rank in list(op.have)[:64] if (s := looked.stack(rank))), None)
    return WaitEdge(
        ranks=ranges.text(waiting.ranks[before] for before in waiting.predecessors[node]),
        call=ops.label(op, looked.snapshot.groups.get(op.gid)),
        missing=ranges.text(_missing(looked, op)),
        where=stack.where if stack is not None else "",
    )


def _missing(looked: Survey, op: PendingOp) -> tuple[int, ...]:
    """Whom it waits for; whoever only has it in a queue waits there for another row's ranks."""
    stuck = tuple(rank for rank in op.holding if rank not in looked.well)
    return op.absent + op.unknown + stuck or op.holding


def _summary(looked: Survey, item: Judged, blamed: Sequence[Culprit], calls: Sequence[str]) -> str:
    group = looked.snapshot.groups.get(item.op.gid)
    is_shared = bool(item.root.ops)  # culprits wait too
    number = len(item.victims) + (len(item.ranks) if is_shared else 0)
    if item.root.vote is not None and item.root.vote.right is None:
        by_side = [
            f"{ranges.named(ranks)} in {call}"
            for ranks, call in zip(_sides(item), calls, strict=True)
        ]
        call = sentences.of_call(item.op, group)
        return sentences.tie(call, by_side, number, item.op.stalled_s)
    inside = set(item.ranks) & (set(item.op.have) if is_shared else set(item.op.holding))
    return sentences.summary(
        item.kind, item.op, group, blamed, item.ranks, number, entered=len(inside)
    )


def _sides(item: Judged) -> list[tuple[int, ...]]:
    assert item.root.vote is not None  # the caller has looked
    return sorted(item.root.vote.by_signature.values(), key=lambda ranks: (-len(ranks), ranks))


def _representative(waiting: WaitGraph, item: Judged) -> int | None:
    """The lowest waiting rank whose way to the root is known."""
    for rank in item.victims or item.ranks:
        node = waiting.node_of.get(
            rank
        )  # a side of a mismatch may have finished and wait in nothing
        if node is not None and waiting.successors[node]:
            return rank
    return None
