"""What a GPU's own errors say of it: which of them are the hardware's, and not the program's.

https://docs.nvidia.com/deploy/xid-errors/ tells each code's causes. Those that a faulty program can
raise (13, 31, 43, 45, 68, 69) are evidence for people, and blame no node.
"""

from __future__ import annotations

from collections.abc import Iterable

from hangwatch_agent.wire import RankBeat
from hangwatch_server.model import RankView

HARDWARE_XIDS = {
    48: "an uncorrectable memory error",
    61: "its microcontroller stopped",
    62: "its microcontroller halted",
    63: "a memory row was remapped",
    64: "a memory row could not be remapped",
    74: "an NVLink error",
    79: "it has fallen off the bus",
    92: "a high rate of memory errors",
    94: "a contained memory error",
    95: "an uncontained memory error",
    119: "its system processor does not answer",
    120: "its system processor failed",
    140: "an unrecovered memory error",
}
BUSY_PERCENT = 90.0


def failure(beat: RankBeat | None) -> int | None:
    """The newest Xid of this rank's GPU that speaks of its hardware."""
    if beat is None or beat.gpu is None:
        return None
    return next((code for code in reversed(beat.gpu.xid) if code in HARDWARE_XIDS), None)


def words(beat: RankBeat | None) -> str:
    """The failure for people, "" for none."""
    code = failure(beat)
    if code is None or beat is None or beat.gpu is None:
        return ""
    return f"GPU {beat.gpu.index} raised Xid {code}: {HARDWARE_XIDS[code]}"


def is_busy(beat: RankBeat | None) -> bool:
    share = beat.gpu.utilisation if beat is not None and beat.gpu is not None else None
    return share is not None and share >= BUSY_PERCENT


def is_shared(views: Iterable[RankView]) -> bool:
    """Whether two ranks of the same node say that they use the same GPU."""
    seen: set[tuple[str, str]] = set()
    for view in views:
        gpu = view.beat.gpu if view.beat is not None else None
        if gpu is None or not gpu.uuid:
            continue
        if (view.node, gpu.uuid) in seen:
            return True
        seen.add((view.node, gpu.uuid))
    return False
