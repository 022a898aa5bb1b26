"""What a busy GPU says of its rank: work, or a collective's kernel that waits for its peers.

NCCL's kernels spin while they wait, so the utilisation is full either way. Load therefore proves
work only of a rank that has no collective of its own on the GPU.
"""

from __future__ import annotations

from hangwatch_agent.wire import GroupBeat
from hangwatch_server.detect.settings import DetectSettings
from hangwatch_server.model import Activity, RankView


def works(view: RankView, s: DetectSettings) -> bool:
    gpu = view.beat.gpu if view.beat else None
    is_busy = gpu is not None and (gpu.utilisation or 0.0) >= s.working_gpu_percent
    return is_busy and not _may_be_a_collective(view)


def _may_be_a_collective(view: RankView) -> bool:
    """The main thread is in a collective, or waits for its GPU, which may be in one."""
    stack = view.stack
    if stack is None or view.beat is None:
        return False
    if stack.activity is Activity.COLLECTIVE:
        return True
    waits = stack.activity is Activity.GPU or stack.is_opaque
    return waits and any(_may_run(group) for group in view.beat.groups)


def _may_run(group: GroupBeat) -> bool:
    """Entered, not finished, and not known to stand in the queue behind something else.

    Only NCCL's watchdog says what has finished, and only with start events what has begun.
    """
    if group.finished is None:
        return False
    newest = max((entry.seq for entry in group.entries), default=-1)
    if max(newest, group.seq or 0) <= group.finished:
        return False
    if group.started is not None and group.started >= group.finished:
        return group.started > group.finished
    front = next((entry for entry in group.entries if entry.seq == group.finished + 1), None)
    return front is None or front.is_started is not False
