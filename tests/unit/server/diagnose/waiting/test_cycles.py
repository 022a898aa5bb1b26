"""Cycles, false cycles, sends and receives, monitored barriers, and calls that all have entered."""

from __future__ import annotations

import msgspec
from tests.unit.server.diagnose import builders as make

from hangwatch_agent import wire
from hangwatch_server.diagnose import diagnose
from hangwatch_server.model import Activity, Condition, Kind

PAIR = [make.world(0, 1), make.group("tp", (0, 1))]


def test_opposite_order_of_two_groups_is_a_deadlock_of_both_ranks() -> None:
    """A real gloo dump: rank 0 waits in the default group's #6, rank 1 in another group's #1."""
    inside = make.stack(Activity.COLLECTIVE, op="all_reduce")
    views = [
        make.rank(0, make.at("world", 5, 6), make.at("tp", 0), stack=inside),
        make.rank(1, make.at("world", 5), make.at("tp", 0, 1), stack=inside),
    ]

    found = diagnose(make.snapshot(views, PAIR))

    assert len(found) == 1
    assert (found[0].kind, found[0].culprit_ranks) == (Kind.DEADLOCK, "0-1")
    assert found[0].is_hard
    assert [(s.rank, s.for_) for s in found[0].cycle] == [(0, (1,)), (1, (0,))]


def test_cycle_is_hard_evidence_only_once_every_stack_of_it_was_seen() -> None:
    """Rank 1 may have issued its front without waiting, and be frozen anywhere."""
    inside = make.stack(Activity.COLLECTIVE, op="all_reduce")
    views = [
        make.rank(0, make.at("world", 5, 6), make.at("tp", 0), stack=inside),
        make.rank(1, make.at("world", 5), make.at("tp", 0, 1)),
    ]

    found = diagnose(make.snapshot(views, PAIR))[0]

    assert (found.kind, found.is_hard) == (Kind.DEADLOCK, False)


def test_sends_that_nobody_waits_in_yet_are_no_hard_cycle() -> None:
    views = [
        make.rank(0, make.at("world", 5), calls=(receive(1),)),
        make.rank(
            1,
            make.at("world", 5),
            calls=(
                wire.Call(op="recv", gid="world", age_s=12.0, peer=0, seq=1, is_blocking=False),
            ),
        ),
    ]

    found = diagnose(make.snapshot(views, [make.world(0, 1)]))[0]

    assert (found.kind, found.is_hard) == (Kind.DEADLOCK, False)


def test_rank_behind_a_cycle_waits_and_is_no_culprit() -> None:
    views = [
        make.rank(0, make.at("world", 5, 6), make.at("tp", 0)),
        make.rank(1, make.at("world", 5), make.at("tp", 0, 1)),
        make.rank(2, make.at("world", 5, 6)),
    ]
    groups = [make.world(0, 1, 2), make.group("tp", (0, 1))]

    found = diagnose(make.snapshot(views, groups))[0]

    assert (found.culprit_ranks, found.waiting) == ("0-1", "2")


def test_old_async_front_of_a_rank_outside_collectives_makes_no_cycle() -> None:
    """Rank 1 issued world #6 without waiting and now hangs in its loader; tp #1 waits for it."""
    views = [
        make.rank(0, make.at("world", 5), make.at("tp", 0, 1)),
        make.rank(
            1,
            make.at("world", 5, 6),
            make.at("tp", 0),
            stack=make.stack(Activity.DATALOADER),
        ),
    ]

    found = diagnose(make.snapshot(views, PAIR))[0]

    assert (found.kind, found.culprit_ranks) == (Kind.MISSING_RANKS, "1")


def test_stack_inside_a_call_chooses_that_calls_front() -> None:
    """Rank 1 has an old asynchronous all_gather and blocks in a broadcast that rank 2 skips."""
    front = make.entry(1, "all_gather")
    views = [
        make.rank(0, make.at("tp", 0, stall_s=9.0), make.at("world", 5, 6, op="broadcast")),
        make.rank(
            1,
            make.at("tp", 0, front),
            make.at("world", 5, 6, op="broadcast"),
            stack=make.stack(Activity.COLLECTIVE, op="broadcast"),
        ),
        make.rank(2, make.at("world", 5), stack=make.stack(Activity.USER_CODE)),
    ]
    groups = [make.world(0, 1, 2), make.group("tp", (0, 1))]

    found = diagnose(make.snapshot(views, groups))

    assert (found[0].kind, found[0].culprit_ranks) == (Kind.MISSING_RANKS, "2")


def test_queued_front_does_not_point_back_at_itself() -> None:
    """The prototype's bug: a rank whose only front is queued made a cycle of one rank."""
    running = make.entry(6, started=True)
    queued = make.entry(6, started=False)
    groups = [make.group("dp", (0, 1), backend="nccl")]
    views = [make.rank(0, make.at("dp", 5, running)), make.rank(1, make.at("dp", 5, queued))]

    found = diagnose(make.snapshot(views, groups))

    assert len(found) == 1
    assert found[0].kind is Kind.STALLED_COLLECTIVE
    assert found[0].culprits[0].rank == 1
    assert found[0].culprits[0].condition is Condition.GPU_BUSY


def test_collective_that_all_entered_blames_nobody() -> None:
    views = [make.rank(r, make.at("world", 5, 6)) for r in range(3)]

    found = diagnose(make.snapshot(views, [make.world(0, 1, 2)]))[0]

    assert found.kind is Kind.STALLED_COLLECTIVE
    assert found.culprits == ()
    assert found.waiting == "0-2"
    assert not found.is_hard
    assert "No rank is known to be at fault" in found.summary


def test_rank_stopped_inside_a_collective_is_named() -> None:
    views = [
        make.rank(0, make.at("world", 5, 6)),
        make.rank(1, make.at("world", 5, 6), facts=make.process("T")),
    ]

    found = diagnose(make.snapshot(views, [make.world(0, 1)]))[0]

    assert found.culprit_ranks == "1"
    assert found.culprits[0].condition is Condition.STOPPED
    assert any("SIGCONT" in hint for hint in found.hints)


def receive(peer: int, seq: int = 1) -> wire.Call:
    return wire.Call(op="recv", gid="world", age_s=12.0, peer=peer, seq=seq)


def test_receive_without_its_send_blames_the_silent_sender() -> None:
    views = [
        make.rank(0, make.at("world", 5), calls=(receive(1),)),
        make.rank(1, make.at("world", 5), stack=make.stack(Activity.USER_CODE)),
    ]

    found = diagnose(make.snapshot(views, [make.world(0, 1)]))[0]

    assert (found.kind, found.culprit_ranks, found.waiting) == (Kind.UNMATCHED_P2P, "1", "0")
    assert "never posted the send that rank 0 waits for" in found.summary


def test_receives_that_face_each_other_are_a_deadlock() -> None:
    views = [
        make.rank(0, make.at("world", 5), calls=(receive(1),)),
        make.rank(1, make.at("world", 5), calls=(receive(0),)),
    ]

    found = diagnose(make.snapshot(views, [make.world(0, 1)]))[0]

    assert (found.kind, found.culprit_ranks) == (Kind.DEADLOCK, "0-1")
    assert found.is_hard


def test_send_and_receive_with_different_tags_wait_for_each_other() -> None:
    posted = wire.P2PCount(gid="world", peer=1, is_send=True, posted=1, done=0)
    send = wire.Call(op="send", gid="world", age_s=12.0, peer=1, seq=1, tag=7)
    views = [
        make.rank(0, make.at("world", 5), calls=(send,), p2p=(posted,)),
        make.rank(1, make.at("world", 5), calls=(msgspec.structs.replace(receive(0), tag=8),)),
    ]

    found = diagnose(make.snapshot(views, [make.world(0, 1)]))[0]

    assert (found.kind, found.culprit_ranks) == (Kind.DEADLOCK, "0-1")
    assert any("tags agree" in hint for hint in found.hints)


def test_pipeline_chain_leads_to_the_stage_that_does_not_send() -> None:
    views = [
        make.rank(0, make.at("world", 5), stack=make.stack(Activity.DATALOADER)),
        *(make.rank(r, make.at("world", 5), calls=(receive(r - 1),)) for r in (1, 2, 3)),
    ]

    found = diagnose(make.snapshot(views, [make.world(0, 1, 2, 3)]))[0]

    assert (found.culprit_ranks, found.waiting) == ("0", "1-3")


def test_posted_send_is_matched() -> None:
    sent = wire.P2PCount(gid="world", peer=0, is_send=True, posted=1, done=1)
    views = [
        make.rank(0, make.at("world", 5), calls=(receive(1),)),
        make.rank(1, make.at("world", 5), p2p=(sent,)),
    ]

    found = diagnose(make.snapshot(views, [make.world(0, 1)]))[0]

    assert found.kind is Kind.STALLED_COLLECTIVE
    assert found.culprits == ()


def test_monitored_barrier_names_who_is_not_in_it() -> None:
    call = wire.Call(op="monitored_barrier", gid="world", age_s=12.0)
    views = [
        *(make.rank(r, make.at("world", 10), calls=(call,)) for r in range(3)),
        make.rank(3, make.at("world", 10), stack=make.stack(Activity.USER_CODE)),
    ]

    found = diagnose(make.snapshot(views, [make.world(0, 1, 2, 3)]))[0]

    assert (found.kind, found.culprit_ranks) == (Kind.MISSING_RANKS, "3")
    assert (found.op, found.seq) == ("monitored_barrier", None)
    assert found.culprits[0].condition is Condition.IN_USER_CODE
