"""The board: which process is which rank of which attempt, and whose agent is heard."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.server.board import beats

from hangwatch_agent import wire
from hangwatch_server import diagnose
from hangwatch_server.board import Board
from hangwatch_server.board.base import job_id
from hangwatch_server.board.memory import MAX_JOBS_PER_NODE
from hangwatch_server.model import Link

JOB = beats.JOB


def test_missing_ranks_of_the_world_appear_without_a_beat() -> None:
    board = beats.board_with("a")
    board.apply("a", beats.heartbeat([beats.rank(0), beats.rank(2)]), 1.0)

    snapshot = board.snapshot(JOB, 1.0)

    assert snapshot is not None
    assert list(snapshot.ranks) == [0, 1, 2, 3]
    assert snapshot.ranks[1].beat is None
    assert snapshot.ranks[1].node == ""
    assert snapshot.ranks[2].node == "a"


def test_job_that_says_it_is_very_large_is_listed_as_far_as_it_is_seen() -> None:
    board = beats.board_with("a", "b")
    far = wire.MAX_WORLD_SIZE - 1
    board.apply("a", beats.heartbeat([beats.rank(0, world=2)]), 1.0)
    board.apply("b", beats.heartbeat([beats.rank(far, world=wire.MAX_WORLD_SIZE)]), 1.0)

    snapshot = board.snapshot(JOB, 1.0)

    assert snapshot is not None
    assert snapshot.world_size == wire.MAX_WORLD_SIZE
    assert list(snapshot.ranks) == sorted(snapshot.ranks)
    assert len(snapshot.ranks) < 2000
    assert [rank for rank, view in snapshot.ranks.items() if view.beat is not None] == [0, far]
    seen = diagnose.coverage(snapshot)
    assert (seen.reporting, seen.world_size, seen.silent) == (2, far + 1, f"1-{far - 1}")


def test_large_job_that_an_earlier_server_saw_is_listed_whole_at_once() -> None:
    board = beats.board_with("a")
    board.apply("a", beats.heartbeat([beats.rank(0, world=16_384)]), 1.0)

    board.set_base(JOB, 1, {rank: ("a", 1000 + rank, 100) for rank in range(16_384)}, 1.0)
    snapshot = board.snapshot(JOB, 1.0)

    assert snapshot is not None
    assert len(snapshot.ranks) == 16_384


def test_jobs_are_made_by_ranks_and_only_so_many_by_one_node() -> None:
    board = beats.board_with("a", "b")
    made_up = tuple(wire.Launch(key=f"empty-{number}", name="x") for number in range(500))
    own = [beats.rank(0, world=1, launch=f"own-{number}") for number in range(500)]

    board.apply("a", wire.Heartbeat(number=1, launches=made_up, ranks=tuple(own)), 1.0)
    flooded = board.jobs()
    board.apply("b", beats.heartbeat([beats.rank(0)]), 1.0)
    board.apply("a", wire.Heartbeat(number=2, launches=(), ranks=tuple(own[:1])), 2.0)

    assert set(flooded) == {job_id(f"own-{number}") for number in range(MAX_JOBS_PER_NODE)}
    assert set(board.jobs()) == {*flooded, JOB}


def test_few_words_never_list_very_many_members_of_groups() -> None:
    board = beats.board_with("a")
    text = f"0-{wire.MAX_WORLD_SIZE - 1}"
    groups = [
        wire.GroupInfo(
            gid=wire.gid_of(beats.KEY, "g", text, epoch),
            launch=beats.KEY, name="g", description="", backend="gloo", ranks=text, epoch=epoch,
        )
        for epoch in range(20)
    ]  # fmt: skip
    held = [wire.GroupBeat(gid=group.gid, counter=1, stall_s=0.0) for group in groups]

    board.apply("a", beats.heartbeat([beats.rank(0, groups=held)], groups=groups), 1.0)
    snapshot = board.snapshot(JOB, 1.0)

    assert snapshot is not None
    assert set(snapshot.groups) == {group.gid for group in groups[:4]}


def test_node_whose_jobs_are_forgotten_may_have_others() -> None:
    board = beats.board_with("a")
    old = [beats.rank(0, state="gone", launch=f"old-{number}") for number in range(500)]
    board.apply("a", wire.Heartbeat(number=1, launches=(), ranks=tuple(old)), 1.0)

    board.forget(600.0, 700.0)
    board.apply("a", beats.heartbeat([beats.rank(0)]), 701.0)

    assert board.jobs() == (JOB,)


def test_node_without_a_rank_of_a_job_does_not_rename_it() -> None:
    board = beats.board_with("a", "b")
    board.apply("a", beats.heartbeat([beats.rank(0)]), 1.0)

    launch = wire.Launch(key=beats.KEY, name="another name")
    board.apply("b", wire.Heartbeat(number=1, launches=(launch,), ranks=()), 2.0)
    meta = board.job_meta(JOB, 2.0)

    assert meta is not None
    assert meta.name == "gpt"


def test_world_size_comes_from_torch_where_any_rank_has_it() -> None:
    board = beats.board_with("a")
    board.apply(
        "a",
        beats.heartbeat([beats.rank(0, world=2), beats.rank(1, world=8, certain=False)]),
        1.0,
    )

    snapshot = board.snapshot(JOB, 1.0)

    assert snapshot is not None
    assert snapshot.world_size == 2


def test_newer_processes_make_a_new_attempt_and_older_ones_leave_it() -> None:
    board = beats.board_with("a", "b")
    board.apply("a", beats.heartbeat([beats.rank(0), beats.rank(1)]), 1.0)
    board.apply("b", beats.heartbeat([beats.rank(2), beats.rank(3)]), 1.0)

    board.apply("a", beats.heartbeat([beats.rank(0, start=500), beats.rank(1, start=500)]), 2.0)
    snapshot = board.snapshot(JOB, 2.0)

    assert snapshot is not None
    assert snapshot.attempt == 2
    assert snapshot.age_s == 0.0
    assert [view.beat is not None for view in snapshot.ranks.values()] == [True, True, False, False]


def test_living_process_that_is_never_replaced_joins_the_new_attempt() -> None:
    board = beats.board_with("a", "b")
    board.apply("a", beats.heartbeat([beats.rank(0, world=2)]), 1.0)
    board.apply("b", beats.heartbeat([beats.rank(1, world=2)]), 1.0)
    board.apply("a", beats.heartbeat([beats.rank(0, world=2, start=500)]), 2.0)

    board.apply("b", beats.heartbeat([beats.rank(1, world=2)]), 8.0)
    snapshot = board.snapshot(JOB, 8.0)

    assert snapshot is not None
    assert snapshot.ranks[1].beat is not None


def test_restart_count_sets_the_attempt() -> None:
    board = beats.board_with("a")
    board.apply("a", beats.heartbeat([beats.rank(0, world=1)], restart=3), 1.0)

    snapshot = board.snapshot(JOB, 1.0)

    assert snapshot is not None
    assert snapshot.attempt == 4


def test_gone_rank_of_an_older_attempt_is_not_lifted_by_the_launchs_new_count() -> None:
    board = beats.board_with("a")
    board.apply("a", beats.heartbeat([beats.rank(0), beats.rank(1)]), 1.0)
    board.apply(
        "a",
        beats.heartbeat(
            [beats.rank(0, start=500, restart=1), beats.rank(1, state="gone")], restart=1
        ),
        2.0,
    )

    snapshot = board.snapshot(JOB, 2.0)

    assert snapshot is not None
    assert snapshot.attempt == 2
    assert snapshot.ranks[1].beat is None


def test_older_process_that_is_still_listed_never_comes_back() -> None:
    board = beats.board_with("a")
    both = [beats.rank(0, pid=11, start=500), beats.rank(0, pid=10, start=100)]
    for now_s in (1.0, 2.0, 3.0):
        board.apply("a", beats.heartbeat(both), now_s)

    snapshot = board.snapshot(JOB, 3.0)

    assert snapshot is not None
    assert snapshot.ranks[0].beat is not None
    assert snapshot.ranks[0].beat.pid == 11
    assert snapshot.attempt == 1


def test_node_cannot_take_a_living_rank_of_another_node() -> None:
    board = beats.board_with("a", "b")
    board.apply("a", beats.heartbeat([beats.rank(0)]), 1.0)

    board.apply("b", beats.heartbeat([beats.rank(0, pid=66, start=900)]), 1.5)
    snapshot = board.snapshot(JOB, 1.5)

    assert snapshot is not None
    assert snapshot.ranks[0].node == "a"
    assert snapshot.attempt == 1


def holder(board: Board, now_s: float) -> tuple[str, int]:
    """The node of rank 0, and the attempt."""
    snapshot = board.snapshot(JOB, now_s)
    assert snapshot is not None
    return snapshot.ranks[0].node, snapshot.attempt


def test_no_restart_count_takes_a_living_rank_from_another_node() -> None:
    board = beats.board_with("a", "b")
    forged = beats.heartbeat([beats.rank(0, pid=66, restart=999)], restart=999)
    board.apply("a", beats.heartbeat([beats.rank(0)]), 1.0)

    for now_s in (1.5, 5.5, 9.5):
        board.apply("b", forged, now_s)
        board.apply("a", beats.heartbeat([beats.rank(0)]), now_s + 0.1)

    assert holder(board, 9.7) == ("a", 1)


@pytest.mark.parametrize(
    ("last_of_a", "now_s"),
    [
        (beats.heartbeat([beats.rank(0, state="gone"), beats.rank(1, start=500, restart=1)]), 3.0),
        (beats.heartbeat([beats.rank(1, start=500, restart=1)], restart=1), 3.0),
        (None, 20.0),
    ],
    ids=["gone", "unlisted", "silent"],
)
def test_restarted_rank_on_another_node_waits_for_the_end_of_the_process_before(
    last_of_a: wire.Heartbeat | None, now_s: float
) -> None:
    """Its agent may be heard seconds before the one of the node that it has left."""
    board = beats.board_with("a", "b")
    moved = beats.heartbeat([beats.rank(0, pid=66, restart=1)], restart=1)
    board.apply("a", beats.heartbeat([beats.rank(0), beats.rank(1)]), 1.0)

    board.apply("b", moved, 1.5)
    too_early = holder(board, 1.6)
    if last_of_a is not None:
        board.apply("a", last_of_a, now_s)
    board.apply("b", moved, now_s + 0.5)

    assert too_early == ("a", 1)
    assert holder(board, now_s + 0.6) == ("b", 2)


def test_rank_moves_to_another_node_once_its_process_is_gone() -> None:
    board = beats.board_with("a", "b")
    board.apply("a", beats.heartbeat([beats.rank(0, state="gone")]), 1.0)

    board.apply("b", beats.heartbeat([beats.rank(0, pid=66)]), 1.5)
    snapshot = board.snapshot(JOB, 1.5)

    assert snapshot is not None
    assert snapshot.ranks[0].node == "b"
    assert snapshot.attempt == 2


def test_rank_that_is_no_longer_listed_is_late_and_then_not_reported_but_never_gone() -> None:
    board = beats.board_with("a")
    board.apply("a", beats.heartbeat([beats.rank(0), beats.rank(1)]), 1.0)
    seen = []

    for now_s in (2.0, 6.9, 7.1, 60.0):
        board.apply("a", beats.heartbeat([beats.rank(0)]), now_s)
        snapshot = board.snapshot(JOB, now_s)
        assert snapshot is not None
        view = snapshot.ranks[1]
        seen.append((view.node, view.link, view.beat is not None))

    assert seen == [
        ("a", Link.LATE, True),
        ("a", Link.LATE, True),
        ("a", Link.LIVE, False),
        ("a", Link.LIVE, False),
    ]


def test_rank_that_is_listed_again_is_what_it_was() -> None:
    board = beats.board_with("a")
    both = beats.heartbeat([beats.rank(0), beats.rank(1)])
    board.apply("a", both, 1.0)
    for now_s in (2.0, 9.0):
        board.apply("a", beats.heartbeat([beats.rank(0)]), now_s)

    board.apply("a", both, 10.0)
    snapshot, meta = board.snapshot(JOB, 10.0), board.job_meta(JOB, 10.0)

    assert snapshot is not None
    assert meta is not None
    assert (snapshot.ranks[1].link, snapshot.attempt) == (Link.LIVE, 1)
    assert snapshot.ranks[1].beat is not None
    assert meta.reporting == 2


def test_rank_that_is_no_longer_listed_is_not_counted_as_reporting() -> None:
    board = beats.board_with("a")
    board.apply("a", beats.heartbeat([beats.rank(0), beats.rank(1)]), 1.0)
    for now_s in (2.0, 9.0):
        board.apply("a", beats.heartbeat([beats.rank(0)]), now_s)

    meta = board.job_meta(JOB, 9.0)

    assert meta is not None
    assert (meta.reporting, meta.world_size, board.nodes(9.0)[0].ranks) == (1, 4, 1)


def test_rank_that_its_old_node_no_longer_lists_may_come_up_on_another() -> None:
    board = beats.board_with("a", "b")
    board.apply("a", beats.heartbeat([beats.rank(0), beats.rank(1)]), 1.0)
    for now_s in (2.0, 9.0):
        board.apply("a", beats.heartbeat([beats.rank(0)]), now_s)

    board.apply("b", beats.heartbeat([beats.rank(1, pid=66)]), 9.5)
    snapshot = board.snapshot(JOB, 9.5)

    assert snapshot is not None
    assert snapshot.ranks[1].node == "b"


def test_link_goes_from_live_to_late_to_lost_and_back() -> None:
    board = beats.board_with("a")
    board.apply("a", beats.heartbeat([beats.rank(0)]), 0.0)

    links = [board.nodes(now_s)[0].link for now_s in (5.0, 5.1, 20.0, 20.1)]
    board.apply("a", beats.heartbeat([beats.rank(0)]), 21.0)

    assert links == [Link.LIVE, Link.LATE, Link.LATE, Link.LOST]
    assert board.nodes(21.0)[0].link is Link.LIVE


def test_closed_connection_is_late_at_once_and_lost_when_it_does_not_come_back() -> None:
    board = beats.board_with("a")
    board.apply("a", beats.heartbeat([beats.rank(0)]), 0.0)

    board.disconnected("a", 1.0)

    assert board.nodes(1.0)[0].link is Link.LATE
    assert board.nodes(20.5)[0].link is Link.LOST


def test_attempts_are_counted_on_from_what_an_earlier_server_stored() -> None:
    stored = {rank: ("a", 1000 + rank, 100) for rank in range(4)}
    same, newer = beats.board_with("a"), beats.board_with("a")
    same.apply("a", beats.heartbeat([beats.rank(rank) for rank in range(4)]), 1.0)
    newer.apply("a", beats.heartbeat([beats.rank(rank, start=500) for rank in range(4)]), 1.0)

    for board in (same, newer):
        board.set_base(JOB, 3, stored, 1.0)
    snapshots = [board.snapshot(JOB, 1.0) for board in (same, newer)]

    assert [snapshot and snapshot.attempt for snapshot in snapshots] == [3, 4]
    assert all(view.beat for snapshot in snapshots if snapshot for view in snapshot.ranks.values())


def test_rank_of_a_node_that_has_not_come_back_since_a_restart_names_that_node() -> None:
    stored = {rank: ("a" if rank < 2 else "b", 1000 + rank, 100) for rank in range(4)}
    board = beats.board_with("a")
    board.apply("a", beats.heartbeat([beats.rank(0), beats.rank(1)]), 1.0)

    board.set_base(JOB, 1, stored, 1.0)
    soon, later = board.snapshot(JOB, 2.0), board.snapshot(JOB, 30.0)

    assert soon is not None
    assert later is not None
    assert (soon.ranks[2].node, soon.ranks[2].link) == ("b", Link.LATE)
    assert later.ranks[2].link is Link.LOST


def test_captured_entries_stand_in_until_the_counter_moves() -> None:
    gid = wire.gid_of(beats.KEY, "g", "0-3", 1)
    info = wire.GroupInfo(
        gid=gid, launch=beats.KEY, name="g", description="", backend="gloo", ranks="0-3"
    )
    board = beats.board_with("a")

    def beat(counter: int, stall_s: float) -> wire.Heartbeat:
        group = wire.GroupBeat(gid=gid, counter=counter, stall_s=stall_s)
        return beats.heartbeat([beats.rank(0, groups=[group])], groups=[info])

    def entries(now_s: float) -> int:
        snapshot = board.snapshot(JOB, now_s)
        assert snapshot is not None
        view = snapshot.ranks[0].beat
        assert view is not None
        return len(view.groups[0].entries)

    board.apply("a", beat(7, 5.0), 10.0)
    part = wire.CapturePart(
        capture="c",
        launch=beats.KEY,
        rank=0,
        pid=1000,
        age_s=1.0,
        entries=(
            wire.GroupEntries(
                gid=gid, entries=(wire.Entry(seq=7, op="all_reduce", is_retired=False),)
            ),
        ),
    )
    board.merge_entries(part, 10.5)
    at_once = entries(10.5)
    board.apply("a", beat(7, 6.0), 11.0)
    still = entries(11.0)
    board.apply("a", beat(8, 0.1), 12.0)

    assert (at_once, still, entries(12.0)) == (1, 1, 0)


def test_job_without_a_living_rank_leaves_the_board() -> None:
    board = beats.board_with("a")
    board.apply("a", beats.heartbeat([beats.rank(0, world=1, state="gone")]), 1.0)

    early = board.forget(600.0, 500.0)
    late = board.forget(600.0, 700.0)

    assert early == ()
    assert late == (JOB,)
    assert board.snapshot(JOB, 700.0) is None


def test_stalled_job_with_living_ranks_stays_on_the_board() -> None:
    board = beats.board_with("a")
    for now_s in range(0, 2000, 4):
        board.apply("a", beats.heartbeat([beats.rank(0, world=1)]), float(now_s))

    assert board.forget(600.0, 1997.0) == ()


def test_old_job_outlives_a_late_agent_and_its_own_end() -> None:
    """Its age does not count: only how long ago a living process of it was heard."""
    board = beats.board_with("a")
    for now_s in range(0, 2000, 4):
        board.apply("a", beats.heartbeat([beats.rank(0, world=1)]), float(now_s))

    assert board.forget(600.0, 2010.0) == ()

    board.apply("a", beats.heartbeat([beats.rank(0, world=1, state="gone")]), 2011.0)

    assert board.forget(600.0, 2300.0) == ()
    assert board.forget(600.0, 2600.0) == (JOB,)


@given(order=st.permutations(["a", "b", "c", "d"]))
def test_order_in_which_nodes_report_does_not_matter(order: list[str]) -> None:
    straight, mixed = beats.new_board(), beats.new_board()
    frames = {
        node: beats.heartbeat(
            [beats.rank(index, start=500 if index % 2 else 100, restart=index % 2)],
            restart=index % 2,
        )
        for index, node in enumerate("abcd")
    }
    for board, nodes in ((straight, "abcd"), (mixed, order)):
        for node in "abcd":
            board.hello(node, wire.Hello(protocol=1, node=node, version="0"), 0.0)
        for node in nodes:
            board.apply(node, frames[node], 1.0)

    one, other = straight.snapshot(JOB, 1.0), mixed.snapshot(JOB, 1.0)

    assert one is not None
    assert other is not None
    assert (one.attempt, one.ranks, one.world_size) == (
        other.attempt,
        other.ranks,
        other.world_size,
    )


@given(st.lists(st.integers(min_value=1, max_value=5), min_size=1, max_size=12))
def test_attempt_never_falls_and_the_newest_process_holds_the_rank(starts: list[int]) -> None:
    board = beats.board_with("a")
    attempts = []

    for step, start in enumerate(starts):
        one = beats.rank(0, world=1, start=start, pid=start)
        board.apply("a", beats.heartbeat([one]), float(step))
        snapshot = board.snapshot(JOB, float(step))
        assert snapshot is not None
        attempts.append(snapshot.attempt)

    assert attempts == sorted(attempts)
    assert snapshot is not None
    assert snapshot.ranks[0].beat is not None
    assert snapshot.ranks[0].beat.pid == max(starts)


def test_a_clock_that_goes_wrong_is_remembered_from_the_last_hello() -> None:
    board = beats.new_board()
    hello = wire.Hello(protocol=1, node="node-a", version="0", wall_s=1_000.0)

    board.hello("node-a", hello, 0.0, 2.5)
    assert [node.clock_ahead_s for node in board.nodes(0.0)] == [2.5]

    board.hello("node-a", hello, 1.0)
    assert [node.clock_ahead_s for node in board.nodes(1.0)] == [None]
