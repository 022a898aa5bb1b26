"""A node's state told anew: another board makes the same of it as of all that was said before."""

from __future__ import annotations

import dataclasses

import msgspec
import pytest
from tests.unit.server.board import beats

from hangwatch_agent import wire
from hangwatch_server.board import RelayedBoard
from hangwatch_server.model import Link, Snapshot

JOB = beats.JOB
RANKS = "0-3"
GID = wire.gid_of(beats.KEY, "dp", RANKS, 1)
GROUP = wire.GroupInfo(
    gid=GID, launch=beats.KEY, name="dp", description="", backend="gloo", ranks=RANKS, timeout_s=60
)
ENTRY = wire.Entry(seq=7, op="all_reduce", is_retired=False)
HELLO = wire.Hello(protocol=1, node="a", version="0")


def waiting(*, is_kept: bool) -> wire.GroupBeat:
    return wire.GroupBeat(
        gid=GID,
        counter=7,
        stall_s=2.0,
        seq=7,
        entries=() if is_kept else (ENTRY,),
        are_entries_current=True,
        entries_age_s=0.5,
        are_entries_kept=is_kept,
    )


def board_of_one_node() -> RelayedBoard:
    """Its group and entries were said once; the newest heartbeat leaves them out."""
    board = RelayedBoard()
    board.hello("a", HELLO, 0.0, 0.25)
    first = [beats.rank(rank, groups=[waiting(is_kept=False)]) for rank in range(4)]
    newest = [beats.rank(rank, groups=[waiting(is_kept=True)]) for rank in range(4)]
    board.apply("a", beats.heartbeat(first, groups=[GROUP], restart=1), 1.0)
    board.apply("a", beats.heartbeat(newest, restart=1), 2.0)
    return board


def told_to_another(board: RelayedBoard, now_s: float, there_s: float) -> RelayedBoard:
    """As over the wire, to a server whose clock shows another time."""
    whole = board.whole("a", now_s)
    assert whole is not None
    other = RelayedBoard()
    other.hello("a", whole.hello, there_s, whole.clock_ahead_s)
    data = wire.encode(whole.heartbeat)
    other.apply("a", msgspec.msgpack.decode(data, type=wire.Heartbeat), there_s - whole.age_s)
    return other


def seen(board: RelayedBoard, now_s: float) -> Snapshot:
    snapshot = board.snapshot(JOB, now_s)
    assert snapshot is not None
    return dataclasses.replace(snapshot, taken_s=0.0, age_s=0.0)


def test_another_board_sees_the_same_job_with_groups_and_entries_that_were_said_once() -> None:
    board = board_of_one_node()

    other = told_to_another(board, 2.5, there_s=900.5)

    assert seen(other, 900.5) == seen(board, 2.5)
    assert seen(other, 900.5).ranks[0].age_s == 0.5
    beat = seen(other, 900.5).ranks[0].beat
    assert beat is not None
    assert beat.groups[0].entries == (ENTRY,)
    assert other.nodes(900.5)[0].clock_ahead_s == 0.25


def test_rank_that_the_newest_heartbeat_did_not_list_is_not_told() -> None:
    board = board_of_one_node()
    board.apply("a", beats.heartbeat([beats.rank(0)]), 3.0)

    whole = board.whole("a", 3.0)

    assert whole is not None
    assert [beat.rank for beat in whole.heartbeat.ranks] == [0]


def test_rank_of_a_node_whose_server_is_not_heard_is_unknown_and_never_lost() -> None:
    board = board_of_one_node()

    board.set_hearing(unheard=frozenset({"a"}), is_deaf=True, own=())
    view = seen(board, 500.0).ranks[0]
    meta = board.job_meta(JOB, 500.0)

    assert (view.node, view.link, view.beat) == ("a", Link.LATE, None)
    assert meta is not None
    assert meta.reporting == 0


def test_node_that_is_known_from_the_database_alone_is_not_lost_while_we_are_deaf() -> None:
    board = RelayedBoard()
    board.hello("b", msgspec.structs.replace(HELLO, node="b"), 0.0)
    board.apply("b", beats.heartbeat([beats.rank(3)]), 1.0)
    board.set_base(JOB, 1, {rank: ("a", 1000 + rank, 100) for rank in range(3)}, 1.0)

    heard = seen(board, 60.0).ranks[0].link
    board.set_hearing(unheard=frozenset(), is_deaf=True, own=("b",))
    deaf = seen(board, 60.0).ranks[0].link

    assert (heard, deaf) == (Link.LOST, Link.LATE)


def test_nodes_of_this_very_server_are_heard_whatever_else_is_not() -> None:
    board = board_of_one_node()
    board.set_hearing(unheard=frozenset({"b"}), is_deaf=True, own=("a",))

    view = seen(board, 2.5).ranks[0]

    assert view.link is Link.LIVE
    assert view.beat is not None


def test_answer_of_nccl_ras_is_told_with_the_node_that_brought_it() -> None:
    board = board_of_one_node()
    members = tuple(
        wire.RasMember(rank, 0, 1000 + rank, 0, wire.RasState.RUNNING, (5,)) for rank in range(4)
    )
    item = wire.RasCommunicator(hash="ae94", size=4, ops=("all_reduce",), members=members)
    answer = wire.RasReport(
        launch=beats.KEY, number=1, age_s=0.5, hosts=("10.0.0.1",), communicators=(item,)
    )
    beat = beats.heartbeat([beats.rank(rank) for rank in range(4)], restart=1)
    board.apply("a", msgspec.structs.replace(beat, ras=(answer,)), 3.0)

    other = told_to_another(board, now_s=4.0, there_s=100.0)

    (here,), (there,) = seen(board, 4.0).ras, seen(other, 100.0).ras
    assert [member.rank for member in there.members] == [0, 1, 2, 3]
    assert there.hash == here.hash
    assert there.age_s == pytest.approx(here.age_s)
