"""Answers of NCCL RAS on the board: whose they are, how long they stand, which ranks they mean."""

from __future__ import annotations

from collections.abc import Sequence

from tests.unit.server.board import beats

from hangwatch_agent import wire
from hangwatch_agent.wire import RasMember, RasState
from hangwatch_server.board import Board, ras
from hangwatch_server.model import RasView, Snapshot


def member(rank: int, *, pid: int | None = None, host: int = 0, count: int = 5) -> RasMember:
    number = 1000 + rank if pid is None else pid
    return RasMember(rank, host, number, 0, RasState.RUNNING, (count,))


def answer(
    members: Sequence[RasMember], *, age_s: float = 0.0, size: int = 4, launch: str = beats.KEY
) -> wire.RasReport:
    item = wire.RasCommunicator(hash="ae94", size=size, ops=("all_reduce",), members=tuple(members))
    return wire.RasReport(
        launch=launch, number=1, age_s=age_s, hosts=("10.0.0.1", "10.0.0.2"), communicators=(item,)
    )


def told(
    board: Board, node: str, *answers: wire.RasReport, at_s: float, ranks: Sequence[int]
) -> Snapshot:
    beat = beats.heartbeat([beats.rank(rank) for rank in ranks])
    frame = wire.Heartbeat(number=1, launches=beat.launches, ranks=beat.ranks, ras=answers)
    board.apply(node, frame, at_s)
    found = board.snapshot(beats.JOB, at_s)
    assert found is not None
    return found


def only(snapshot: Snapshot) -> RasView:
    (view,) = snapshot.ras
    return view


FOUR = [member(rank) for rank in range(4)]


def test_members_are_found_by_pid_among_the_job_s_ranks() -> None:
    shuffled = [member(0, pid=1003), member(1, pid=1002), member(2, pid=1001), member(3, pid=1000)]

    view = only(told(beats.board_with("a"), "a", answer(shuffled), at_s=1.0, ranks=range(4)))

    assert [item.rank for item in view.members] == [0, 1, 2, 3]
    assert view.unmapped == 0


def test_same_pid_on_two_nodes_is_told_apart_by_address() -> None:
    board = beats.new_board()
    for node, address in (("a", "10.0.0.1"), ("b", "10.0.0.2")):
        hello = wire.Hello(protocol=1, node=node, version="0", addresses=(address,))
        board.hello(node, hello, 0.0)
    board.apply("b", beats.heartbeat([beats.rank(1, pid=77)]), 0.5)
    board.apply("a", beats.heartbeat([beats.rank(0, pid=77)]), 0.5)
    members = [member(0, pid=77, host=1, count=9), member(1, pid=77, host=0, count=3)]
    frame = beats.heartbeat([beats.rank(0, pid=77)])
    board.apply("a", wire.Heartbeat(
        number=2, launches=frame.launches, ranks=frame.ranks, ras=(answer(members, size=2),)
    ), 1.0)  # fmt: skip

    snapshot = board.snapshot(beats.JOB, 1.0)

    assert snapshot is not None
    assert {item.rank: item.counts for item in only(snapshot).members} == {0: (3,), 1: (9,)}


def test_member_without_pid_is_known_by_its_place_in_a_communicator_of_the_world() -> None:
    unnamed = [member(0), member(1), member(2), member(3, pid=-1, host=-1)]

    view = only(told(beats.board_with("a"), "a", answer(unnamed), at_s=1.0, ranks=range(4)))

    assert [item.rank for item in view.members] == [0, 1, 2, 3]


def test_member_that_no_rank_can_be_found_for_is_counted_only() -> None:
    strange = [member(0), member(1), member(2, pid=4711)]

    view = only(told(beats.board_with("a"), "a", answer(strange, size=3), at_s=1.0, ranks=range(4)))

    assert [item.rank for item in view.members] == [0, 1]
    assert view.unmapped == 1


def test_answers_that_say_the_same_are_one_standstill_from_the_first_of_them() -> None:
    board = beats.board_with("a")
    told(board, "a", answer(FOUR), at_s=1.0, ranks=range(4))

    view = only(told(board, "a", answer(FOUR, age_s=1.0), at_s=12.0, ranks=range(4)))

    assert (view.same_answers, view.unchanged_s, view.age_s) == (2, 11.0, 1.0)


def test_one_member_that_goes_on_ends_the_standstill() -> None:
    board = beats.board_with("a")
    told(board, "a", answer(FOUR), at_s=1.0, ranks=range(4))

    moved = answer([*FOUR[:3], member(3, count=6)])
    view = only(told(board, "a", moved, at_s=11.0, ranks=range(4)))

    assert (view.same_answers, view.unchanged_s) == (1, 0.0)


def test_answer_that_arrives_twice_or_late_changes_nothing() -> None:
    board = beats.board_with("a")
    told(board, "a", answer(FOUR), at_s=10.0, ranks=range(4))

    told(board, "a", answer(FOUR, age_s=2.0), at_s=12.0, ranks=range(4))
    late = answer([member(rank, count=1) for rank in range(4)], age_s=8.0)
    view = only(told(board, "a", late, at_s=13.0, ranks=range(4)))

    assert view.same_answers == 1
    assert view.members[0].counts == (5,)


def test_node_without_a_rank_of_the_job_is_not_listened_to() -> None:
    board = beats.board_with("a", "b")
    told(board, "a", at_s=1.0, ranks=range(4))
    board.apply("b", wire.Heartbeat(number=1, launches=(), ranks=(), ras=(answer(FOUR),)), 1.0)

    snapshot = board.snapshot(beats.JOB, 1.0)

    assert snapshot is not None
    assert snapshot.ras == ()


def test_old_answer_is_dropped_and_a_restart_forgets_it_at_once() -> None:
    board = beats.board_with("a")
    told(board, "a", answer(FOUR), at_s=1.0, ranks=range(4))
    assert told(board, "a", at_s=2.0 + ras.KEEP_S, ranks=range(4)).ras == ()
    told(board, "a", answer(FOUR), at_s=200.0, ranks=range(4))

    board.apply("a", beats.heartbeat([beats.rank(0, start=900)], restart=1), 201.0)

    snapshot = board.snapshot(beats.JOB, 201.0)
    assert snapshot is not None
    assert snapshot.ras == ()


def test_job_of_bare_ranks_that_ras_tells_of_is_seen_at_that_depth() -> None:
    board = beats.board_with("a")
    told(board, "a", answer(FOUR), at_s=1.0, ranks=range(4))

    meta = board.job_meta(beats.JOB, 1.0)

    assert meta is not None
    assert meta.depth is wire.Depth.RAS


def test_communicator_stands_for_the_one_nccl_group_with_its_ranks() -> None:
    gid = wire.gid_of(beats.KEY, "0", "0-3", 1)
    info = wire.GroupInfo(
        gid=gid, launch=beats.KEY, name="0", description="default_pg", backend="nccl", ranks="0-3"
    )
    board = beats.board_with("a")
    group = wire.GroupBeat(gid=gid, counter=1, stall_s=0.0)
    frame = beats.heartbeat([beats.rank(0, groups=[group]), *map(beats.rank, (1, 2, 3))])
    board.apply("a", wire.Heartbeat(
        number=1, launches=frame.launches, ranks=frame.ranks, groups=(info,), ras=(answer(FOUR),)
    ), 1.0)  # fmt: skip

    snapshot = board.snapshot(beats.JOB, 1.0)

    assert snapshot is not None
    assert only(snapshot).gid == gid
