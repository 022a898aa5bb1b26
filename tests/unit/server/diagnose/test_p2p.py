"""Which half of a send and its receive is missing, by counts per ordered pair."""

from __future__ import annotations

import pytest
from tests.unit.server.diagnose import builders as make

from hangwatch_agent import wire
from hangwatch_server.diagnose import diagnose
from hangwatch_server.diagnose.pending import p2p
from hangwatch_server.model import Activity, Kind, RankView


def count(peer: int, posted: int, *, is_send: bool, done: int | None = None) -> wire.P2PCount:
    finished = posted if done is None else done
    return wire.P2PCount(gid="world", peer=peer, is_send=is_send, posted=posted, done=finished)


def call(op: str, peer: int | None, seq: int, *, is_blocking: bool = True) -> wire.Call:
    return wire.Call(op=op, gid="world", age_s=9.0, peer=peer, seq=seq, is_blocking=is_blocking)


def view(
    rank: int, *calls: wire.Call, counts: tuple[wire.P2PCount, ...] = (), outside: bool = False
) -> RankView:
    stack = make.stack(Activity.USER_CODE) if outside else None
    return make.rank(rank, make.at("world", 5), calls=calls, p2p=counts, stack=stack)


def found(*views: RankView) -> tuple[Kind, str]:
    first = diagnose(make.snapshot(views, [make.world(*(one.rank for one in views))]))[0]
    return first.kind, first.culprit_ranks


def test_receiver_that_posted_fewer_receives_is_named() -> None:
    sender = view(0, call("send", 1, 4), counts=(count(1, 4, is_send=True, done=3),))
    receiver = view(1, counts=(count(0, 3, is_send=False),), outside=True)

    assert found(sender, receiver) == (Kind.UNMATCHED_P2P, "1")


def test_sender_that_posted_fewer_sends_is_named() -> None:
    receiver = view(0, call("recv", 1, 3), counts=(count(1, 3, is_send=False, done=2),))
    sender = view(1, counts=(count(0, 2, is_send=True),), outside=True)

    assert found(receiver, sender) == (Kind.UNMATCHED_P2P, "1")


@pytest.mark.parametrize(("any_posted", "expected"), [(0, False), (1, None)])
def test_receive_from_any_rank_may_be_the_other_half_of_a_send(
    any_posted: int, expected: bool | None
) -> None:
    sender = view(0, call("send", 1, 4)).beat
    receiver = view(
        1,
        counts=(count(0, 3, is_send=False), count(p2p.ANY_PEER, any_posted, is_send=False)),
    ).beat
    assert sender is not None
    assert receiver is not None

    assert p2p.is_matched(receiver, sender, sender.calls[0]) is expected


@pytest.mark.parametrize(("any_posted", "expected"), [(0, True), (1, None)])
def test_send_may_have_gone_to_a_receive_from_any_rank(
    any_posted: int, expected: bool | None
) -> None:
    taken = count(p2p.ANY_PEER, any_posted, is_send=False)
    receiver = view(0, call("recv", 1, 3), counts=(count(1, 3, is_send=False), taken)).beat
    sender = view(1, counts=(count(0, 3, is_send=True),)).beat
    assert receiver is not None
    assert sender is not None

    assert p2p.is_matched(sender, receiver, receiver.calls[0]) is expected


def test_two_receives_that_wait_for_each_other_are_a_deadlock() -> None:
    first = view(0, call("recv", 1, 1), counts=(count(1, 1, is_send=False, done=0),))
    second = view(1, call("recv", 0, 1), counts=(count(0, 1, is_send=False, done=0),))

    assert found(first, second) == (Kind.DEADLOCK, "0-1")


def test_stalled_pipeline_is_a_path_to_its_stuck_stage() -> None:
    """Stage 3 is stuck; 0 waits for a gradient of 1, 1 of 2, 2 of 3."""
    stages = [
        view(
            rank,
            call("recv", rank + 1, 1),
            counts=(count(rank + 1, 1, is_send=False, done=0),),
        )
        for rank in range(3)
    ]
    stuck = view(3, outside=True)

    first = diagnose(make.snapshot([*stages, stuck], [make.world(0, 1, 2, 3)]))[0]

    assert (first.kind, first.culprit_ranks, first.waiting) == (Kind.UNMATCHED_P2P, "3", "0-2")
    assert [step.rank for step in first.path] == [0, 1, 2, 3]


def test_batch_waits_for_all_of_its_members() -> None:
    """The send of the batch has its receive; the receive has no send."""
    batch = view(
        0,
        call("send", 1, 2, is_blocking=False),
        call("recv", 2, 2, is_blocking=False),
        counts=(count(1, 2, is_send=True, done=1), count(2, 2, is_send=False, done=1)),
    )
    right = view(1, counts=(count(0, 2, is_send=False, done=1),), outside=True)
    wrong = view(2, counts=(count(0, 1, is_send=True),), outside=True)

    assert found(batch, right, wrong) == (Kind.UNMATCHED_P2P, "2")


def test_rank_that_claims_a_receive_beyond_its_own_count_blames_nobody_for_sure() -> None:
    receiver = view(0, call("recv", 1, 9), counts=(count(1, 4, is_send=False, done=3),))
    sender = view(1, counts=(count(0, 4, is_send=True),))

    finding = diagnose(make.snapshot([receiver, sender], [make.world(0, 1)]))[0]

    assert finding.confidence < 0.6
