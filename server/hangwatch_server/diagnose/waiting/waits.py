"""Which pending operations each rank waits in: the rank -> operation edges of the wait-for graph.

`started` is unknown on gloo, so a rank waits in all of its fronts unless its stack shows the one it
blocks in; a stack outside of every collective means that it waits in none. Without the latter rule
an old asynchronous front plus a newer blocking call would make a false cycle.
"""

from __future__ import annotations

from collections.abc import Iterable

from hangwatch_server.diagnose.pending.ops import Form, PendingOp
from hangwatch_server.diagnose.process import Fate
from hangwatch_server.diagnose.survey import Survey
from hangwatch_server.model import Activity, StackFacts

_NO_ACCOUNT = frozenset({Fate.GONE, Fate.STOPPED, Fate.SILENT})
# Functions whose collectives the recorder knows by another name.
_RECORDED_AS = {
    "all_gather_object": "all_gather",
    "all_gather_single": "all_gather",
    "all_gather_into_tensor": "all_gather",
    "broadcast_object_list": "broadcast",
    "gather_object": "gather",
    "scatter_object_list": "scatter",
    "reduce_scatter_tensor": "all_reduce",  # gloo
}


def fronts(pending: list[PendingOp]) -> dict[int, list[int]]:
    """Indices into `pending` per rank: all that it is in."""
    found: dict[int, list[int]] = {}
    for index, op in enumerate(pending):
        for rank in op.have:
            if rank in found:
                found[rank].append(index)
            else:
                found[rank] = [index]
    return found


def of_ranks(
    survey: Survey,
    pending: list[PendingOp],
    fronts: dict[int, list[int]],
    queued: dict[int, int],
) -> dict[int, list[int]]:
    """Indices into `pending` per waiting rank: those of its fronts that it waits in.

    `queued` are the ranks whose calls wait for their GPU in order, see `queues`.
    """
    plain = survey.well - survey.with_stacks
    edges: dict[int, list[int]] = {}
    for rank, mine in fronts.items():
        if rank in plain and len(mine) == 1:
            entry = pending[mine[0]].have[rank]
            if entry is None or entry.is_started is None:
                edges[rank] = mine  # nothing to choose from, and nothing that speaks against it
                continue
        if rank in plain and rank in queued:
            edges[rank] = [queued[rank]]
            continue
        chosen = _of_rank(survey, pending, rank, mine, queued.get(rank))
        if chosen:
            edges[rank] = chosen
    return edges


def is_ambiguous(survey: Survey, rank: int, mine: list[int]) -> bool:
    """Several fronts and no stack to choose by: the edges are a guess by program order."""
    return len(mine) > 1 and survey.stack(rank) is None


def _of_rank(
    survey: Survey, pending: list[PendingOp], rank: int, mine: list[int], first: int | None
) -> list[int]:
    if survey.fate(rank) in _NO_ACCOUNT or rank in survey.failed_gpus:
        return []
    if any(pending[index].form is Form.SEEN for index in mine):
        return mine  # its stack is the reason why it counts as waiting
    if survey.stands_elsewhere(rank):
        return []
    started = _running(pending, rank, mine)
    if started is not None:
        return started
    if first is not None:
        return [first]
    blocking = [index for index in mine if is_blocking(survey, pending[index], rank)]
    if blocking:
        return blocking
    stack = survey.stack(rank)
    if stack is not None and stack.activity is Activity.COLLECTIVE and stack.op:
        return [index for index in mine if matches(stack, pending[index])] or mine
    return mine


def _running(pending: list[PendingOp], rank: int, mine: list[int]) -> list[int] | None:
    """Fronts whose kernel runs, where the recorder knows; [] when all of them are only queued."""
    entries = [(index, pending[index].have[rank]) for index in mine]
    known = [(index, entry) for index, entry in entries if entry and entry.is_started is not None]
    if not known or len(known) < len(entries):
        return None
    return [index for index, entry in known if entry.is_started]


def queues(
    survey: Survey, pending: list[PendingOp], fronts: dict[int, list[int]]
) -> dict[int, int]:
    """Per rank with several calls queued on its GPU the one that it is at.

    NCCL without start events: calls are queued by a processor that runs ahead of the GPU.
    """
    first: dict[int, tuple[int, int]] = {}  # rank -> the least place in its queue, and its index
    unsaid: set[int] = set()  # ranks in calls that do not say where they are queued
    for index, op in enumerate(pending):
        if not op.queued:
            unsaid.update(op.have)
            continue
        for rank, record in zip(op.have, op.queued, strict=True):
            if rank not in first or record < first[rank][0]:
                first[rank] = record, index
    found: dict[int, int] = {}
    for rank, mine in fronts.items():
        if len(mine) < 2:
            continue
        if rank not in unsaid:
            found[rank] = first[rank][1]
        elif records := queue(survey, pending, rank, mine):
            found[rank] = mine[records.index(min(records))]
    return found


def release_full_queues(
    survey: Survey, pending: list[PendingOp], edges: dict[int, list[int]]
) -> None:
    """Where every GPU has a call in its queue, only those hold it up that are at another call.

    Of the rest nobody is ahead of anybody: that is nobody's fault, as far as can be seen.
    """
    for op in pending:
        if not op.holding:
            continue
        group = survey.snapshot.groups.get(op.gid)
        if group is None or len(op.holding) < len(group.ranks):
            continue
        if survey.fates_are_alive(op.holding):
            op.holding = tuple(rank for rank in op.holding if edges.get(rank))


def queue(survey: Survey, pending: list[PendingOp], rank: int, mine: list[int]) -> list[int] | None:
    """The places of these calls in the order of the program; None where they are in no queue."""
    beat = survey.beat(rank)
    if beat is None or beat.is_destroyed:
        return None
    ops = [pending[index] for index in mine]
    records: list[int] = []
    for op in ops:
        entry = op.have[rank]
        if entry is None or entry.is_started is not None or entry.record_id < 0:
            return None
        records.append(entry.record_id)
    uncounted = {group.gid for group in beat.groups if group.finished is None}
    return None if uncounted and any(op.gid in uncounted for op in ops) else records


def hold_behind(
    pending: list[PendingOp],
    fronts: dict[int, list[int]],
    edges: dict[int, list[int]],
    queued: Iterable[int],
) -> None:
    """Let ranks whose GPU is at an earlier call hold up the later ones that they have queued."""
    behind: dict[int, list[int]] = {}
    for rank in queued:
        at = edges.get(rank, fronts[rank])
        for index in fronts[rank]:
            if index not in at:
                behind.setdefault(index, []).append(rank)
    for index, ranks in behind.items():
        op = pending[index]
        op.holding = tuple(dict.fromkeys((*op.holding, *ranks))) if op.holding else tuple(ranks)


def is_blocking(survey: Survey, op: PendingOp, rank: int) -> bool:
    """A wrapped call that the main thread is inside of right now."""
    if op.form in (Form.MONITORED_BARRIER, Form.RENDEZVOUS):
        return True
    beat = survey.beat(rank)
    if op.form is not Form.P2P or beat is None:
        return False
    return any(
        call.is_blocking
        for call in beat.calls
        if (call.op, call.gid, call.peer, call.seq) == (op.op, op.gid, op.peer, op.seq)
    )


def matches(stack: StackFacts, op: PendingOp) -> bool:
    names = {stack.op, _RECORDED_AS.get(stack.op, stack.op)}
    return op.op in names or op.op.lstrip("_") in names
