"""NCCL's calls are queued by a processor that runs ahead: which of them a rank waits in."""

from __future__ import annotations

import msgspec
import pytest
from tests.unit.server.diagnose import builders as make

from hangwatch_agent import wire
from hangwatch_server.diagnose import diagnose
from hangwatch_server.model import Activity, Condition, Finding, Kind, RankView


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


CROSSED = [make.group("a", (0, 1), backend="nccl"), make.group("b", (0, 1), backend="nccl")]
FOR_GPU = make.stack(Activity.GPU, "train.py:70 in log_loss")


def crossed(*views: RankView) -> Finding:
    (found,) = diagnose(make.snapshot(views, CROSSED))
    assert (found.kind, found.culprit_ranks) == (Kind.DEADLOCK, "0-1")
    return found


def first(stack: bool = True) -> RankView:
    groups = queued("a", 4, 10), queued("b", 6, 11)
    return make.rank(0, *groups, stack=FOR_GPU if stack else None)


def test_crossed_queues_of_ranks_that_wait_for_their_gpus_are_hard_evidence() -> None:
    found = crossed(first(), make.rank(1, queued("a", 4, 81), queued("b", 6, 80), stack=FOR_GPU))

    assert found.is_hard
    assert found.confidence >= 0.95
    assert {culprit.condition for culprit in found.culprits} == {Condition.IN_COLLECTIVE}


def test_start_events_prove_crossed_queues_too() -> None:
    def begun(gid: str, seq: int, *, runs: bool) -> wire.GroupBeat:
        front = make.entry(seq, started=runs)
        at = make.at(gid, seq - 1, front)
        return msgspec.structs.replace(at, finished=seq - 1, seq=seq)

    found = crossed(
        make.rank(0, begun("a", 4, runs=True), begun("b", 6, runs=False), stack=FOR_GPU),
        make.rank(1, begun("a", 4, runs=False), begun("b", 6, runs=True), stack=FOR_GPU),
    )

    assert found.is_hard


@pytest.mark.parametrize(("stall_s", "is_hard"), [(4.7, False), (4.9, True)])
def test_crossed_queues_stand_for_five_seconds_before_they_prove_anything(
    stall_s: float, is_hard: bool
) -> None:
    """A member that goes on elsewhere is behind a kernel or on another stream; 0.2 s is its age."""
    goes_on = make.counter_only("c", 900, stall_s=stall_s)

    found = crossed(
        first(), make.rank(1, queued("a", 4, 81), queued("b", 6, 80), goes_on, stack=FOR_GPU)
    )

    assert found.is_hard is is_hard


def test_crossed_queues_prove_nothing_while_a_rank_of_them_is_not_seen() -> None:
    found = crossed(first(False), make.rank(1, queued("a", 4, 81), queued("b", 6, 80)))

    assert not found.is_hard


def test_call_that_a_rank_has_not_come_to_may_still_come() -> None:
    """Rank 0 waits for its GPU with a #4 in flight: perhaps for other work, and b #6 is next."""
    idle = msgspec.structs.replace(make.at("b", 5), finished=5, seq=5)

    found = crossed(
        make.rank(0, queued("a", 4, 10), idle, stack=FOR_GPU),
        make.rank(1, queued("a", 4, 81), queued("b", 6, 80), stack=FOR_GPU),
    )

    assert not found.is_hard


def test_crossing_that_went_well_before_is_no_proof() -> None:
    """The groups' calls run on streams of their own: in the step before they were crossed too."""

    def after(gid: str, seq: int, was: int, now: int) -> wire.GroupBeat:
        group = queued(gid, seq, now)
        done = msgspec.structs.replace(make.entry(seq - 1, retired=True), record_id=was)
        return msgspec.structs.replace(group, entries=(done, group.entries[-1]))

    found = crossed(
        make.rank(0, after("a", 4, 8, 10), after("b", 6, 9, 11), stack=FOR_GPU),
        make.rank(1, after("a", 4, 79, 81), after("b", 6, 78, 80), stack=FOR_GPU),
    )

    assert not found.is_hard
