"""NCCL's calls are queued by a processor that runs ahead: which of them a rank waits in."""

from __future__ import annotations

import msgspec
from tests.unit.server.diagnose import builders as make

from hangwatch_agent import wire
from hangwatch_server.diagnose import diagnose
from hangwatch_server.model import Activity, Kind


def queued(gid: str, seq: int, record_id: int) -> wire.GroupBeat:
    """Enqueued in program order, without start events."""
    front = msgspec.structs.replace(make.entry(seq), record_id=record_id)
    return msgspec.structs.replace(make.at(gid, seq - 1, front), finished=seq - 1, seq=seq)


def test_call_that_all_have_queued_waits_for_the_call_before_it_in_the_queue() -> None:
    """Ranks 0 and 1 have queued dp #9 behind tp calls; rank 3 never came to tp-1 #4."""
    groups = [
        make.group("dp", (0, 1), backend="nccl"),
        make.group("tp-1", (1, 3), backend="nccl"),
    ]
    idle = msgspec.structs.replace(make.at("tp-1", 3), finished=3, seq=3)
    views = [
        make.rank(0, queued("dp", 9, 70)),
        make.rank(1, queued("dp", 9, 91), queued("tp-1", 4, 90)),
        make.rank(3, idle, stack=make.stack(Activity.DATALOADER)),
    ]

    found = diagnose(make.snapshot(views, groups))

    assert [(item.kind, item.culprit_ranks, item.waiting) for item in found] == [
        (Kind.MISSING_RANKS, "3", "0-1")
    ]


def test_queues_in_opposite_order_are_a_deadlock() -> None:
    groups = [make.group("a", (0, 1), backend="nccl"), make.group("b", (0, 1), backend="nccl")]
    views = [
        make.rank(0, queued("a", 4, 10), queued("b", 6, 11)),
        make.rank(1, queued("a", 4, 81), queued("b", 6, 80)),
    ]

    found = diagnose(make.snapshot(views, groups))

    assert [(item.kind, item.culprit_ranks) for item in found] == [(Kind.DEADLOCK, "0-1")]
