"""Cycles on NCCL's queues: what proves one where the processors wait for their GPUs.

A rank in `torch.cuda.synchronize` or `.item()` shows no call: its processor has queued its calls
long ago. What proves that it is stuck in a cycle is the order of its queue: all calls of the cycle
that are its own are in it, unfinished, and nothing of it moves. A processor that is ahead is
normal, and so are calls of several streams that run at once in any order; hence three conditions
more than for a rank seen inside its call:

1. the rank stands for longer, since a few seconds behind a long kernel are everyday;
2. it has queued every call of the cycle that it is a member of: what it never came to may come;
3. no such crossing of the same groups has gone well before.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter

from hangwatch_server.diagnose import standing
from hangwatch_server.diagnose.pending.ops import PendingOp
from hangwatch_server.diagnose.survey import Survey
from hangwatch_server.diagnose.waiting import waits
from hangwatch_server.diagnose.waiting.roots import Root
from hangwatch_server.model import Activity

_MAX_ASKED = 64  # ranks of whose queues the past is read; cycles are short


def are_stuck(looked: Survey, root: Root, ranks: Sequence[int]) -> bool:
    """Whether the queues of these ranks, which wait for their GPUs, prove that they are stuck."""
    if not all(_is_stuck(looked, root, rank) for rank in ranks):
        return False
    return not _went_well_before(looked, root, {*root.ranks[:_MAX_ASKED], *ranks})


def _is_stuck(looked: Survey, root: Root, rank: int) -> bool:
    view, stack = looked.view(rank), looked.stack(rank)
    if view is None or stack is None or stack.activity is not Activity.GPU:
        return False
    if standing.quiet_s(view) < looked.settings.settled_after_s:
        return False
    mine = [index for index, op in enumerate(root.ops) if rank in op.have]
    if len(mine) < 2 or any(rank in op.absent for op in root.ops):
        return False
    is_queued = waits.queue(looked, root.ops, rank, mine) is not None
    return is_queued or _are_begun(root.ops, rank, mine)


def _are_begun(ops: list[PendingOp], rank: int, mine: list[int]) -> bool:
    """With start events: at least one call runs, and of all others it is known whether they do."""
    entries = [ops[index].have[rank] for index in mine]
    known = [entry.is_started for entry in entries if entry is not None]
    return len(known) == len(mine) and None not in known and any(known)


def _went_well_before(looked: Survey, root: Root, ranks: Iterable[int]) -> bool:
    """Whether finished calls of these groups were queued in orders that contradict each other.

    Then they run at once, on streams that do not wait for each other, and their order is no proof.
    """
    gids = {op.gid for op in root.ops}
    order: TopologicalSorter[tuple[str, int]] = TopologicalSorter()
    for rank in ranks:
        calls = _finished(looked, rank, gids)
        for before, after in itertools.pairwise(calls):
            order.add(after, before)
    try:
        order.prepare()
    except CycleError:
        return True
    return False


def _finished(looked: Survey, rank: int, gids: set[str]) -> list[tuple[str, int]]:
    """The rank's finished calls on these groups, as (gid, seq) in the order of its queue."""
    found = [
        (entry.record_id, gid, entry.seq)
        for gid in gids
        if (group := looked.words(rank, gid)) is not None
        for entry in group.entries
        if entry.is_retired and entry.record_id >= 0
    ]
    return [(gid, seq) for _, gid, seq in sorted(found)]
