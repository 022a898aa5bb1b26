"""Sends beside the receives that should meet them, as they are kept of a hang."""

from __future__ import annotations

from tests.unit.server.diagnose import builders as make
from tests.unit.server.diagnose.test_p2p import call, count, view

from hangwatch_agent import wire
from hangwatch_server.diagnose import pairs
from hangwatch_server.diagnose.pending.p2p import ANY_PEER
from hangwatch_server.model import Pair, PairSide, RankView


def kept(*views: RankView, ranks: tuple[int, ...] = (0,)) -> tuple[Pair, ...]:
    world = make.world(*(one.rank for one in views))
    return pairs.pairs(make.snapshot(views, [world]), ranks)


def test_a_send_stands_beside_the_receives_of_its_peer() -> None:
    sender = view(0, call("send", 1, 4), counts=(count(1, 4, is_send=True, done=3),))
    receiver = view(1, counts=(count(0, 3, is_send=False),))

    (pair,) = kept(sender, receiver)

    assert (pair.sender, pair.receiver, pair.group) == (0, 1, "default_pg")
    assert (pair.sends, pair.receives) == (
        PairSide(posted=4, finished=3),
        PairSide(posted=3, finished=3),
    )
    assert [(one.rank, one.is_send, one.number) for one in pair.calls] == [(0, True, 4)]


def test_the_pair_that_waits_comes_first_then_the_uneven_one() -> None:
    center = view(
        0,
        call("recv", 3, 2),
        counts=(
            count(1, 5, is_send=True),
            count(2, 5, is_send=True),
            count(3, 2, is_send=False, done=1),
        ),
    )
    even, uneven = (view(rank, counts=(count(0, 7 - rank, is_send=False),)) for rank in (2, 1))
    waited_for = view(3, counts=(count(0, 1, is_send=True),))

    found = kept(center, uneven, even, waited_for)

    assert [(pair.sender, pair.receiver) for pair in found] == [(3, 0), (0, 1), (0, 2)]


def test_a_receive_from_any_rank_has_no_sender() -> None:
    receiver = view(0, call("recv_any", None, 2), counts=(count(ANY_PEER, 2, is_send=False),))

    (pair,) = kept(receiver, view(1))

    assert (pair.sender, pair.receiver, pair.sends) == (None, 0, None)
    assert pair.calls[0].rank == 0


def test_nothing_is_claimed_of_a_rank_that_is_not_heard() -> None:
    sender = view(0, call("send", 7, 1), counts=(count(7, 1, is_send=True, done=0),))

    (pair,) = kept(sender, view(1))

    assert pair.receives is None


def test_collectives_are_no_pairs() -> None:
    rooted = wire.Call(op="broadcast", gid="world", age_s=9.0, root=1)

    assert kept(view(0, rooted), view(1)) == ()
