"""What is made of reports that are old, cut short, or cannot be true."""

from __future__ import annotations

from dataclasses import replace

import msgspec
from tests.unit.server.diagnose import builders as make

from hangwatch_agent import wire
from hangwatch_server.diagnose import diagnose
from hangwatch_server.model import Condition, Kind, Link, RankView


def nccl(gid: str, done: int, entered: int, *, kept: int = 16, stall_s: float = 12.0) -> object:
    """A rank that runs ahead: the first unfinished call is started, later ones are queued."""
    entries = tuple(
        make.entry(seq, retired=seq <= done, started=seq <= done + 1)
        for seq in range(1, entered + 1)
    )
    return wire.GroupBeat(
        gid=gid,
        counter=entered,
        stall_s=stall_s,
        seq=entered,
        entries=entries[-kept:],
        entries_age_s=1.0,
        are_entries_current=True,
        finished=done,
        started=min(done + 1, entered),
    )


def waiting(number: int) -> RankView:
    return make.rank(number, make.at("world", 5, 6))


def test_front_of_a_late_rank_that_moved_when_last_heard_is_over() -> None:
    moving = make.at("world", 3, 4, stall_s=0.4)
    late = make.rank(2, moving, link=Link.LATE, age_s=14.0)
    views = [waiting(0), make.rank(1, make.at("world", 5)), late]

    found = diagnose(make.snapshot(views, [make.world(0, 1, 2)]))

    assert found[0].culprit_ranks == "1"
    assert all("#4" not in edge.call for one in found for edge in one.edges)


def test_rank_that_stood_still_when_last_heard_is_still_believed() -> None:
    late = replace(waiting(2), link=Link.LATE, age_s=6.0)
    views = [waiting(0), make.rank(1, make.at("world", 5)), late]

    found = diagnose(make.snapshot(views, [make.world(0, 1, 2)]))

    assert (found[0].culprit_ranks, found[0].waiting) == ("1", "0,2")


def test_late_rank_with_queued_calls_is_not_blamed_beside_the_culprit() -> None:
    views = [
        make.rank(0, nccl("world", 5, 6)),
        make.rank(1, nccl("world", 5, 5)),
        make.rank(2, nccl("world", 4, 6, stall_s=0.3), link=Link.LATE, age_s=14.0),
    ]

    found = diagnose(make.snapshot(views, [make.world(0, 1, 2)]))

    assert found[0].culprit_ranks == "1"


def test_front_that_wrapped_out_of_the_ring_is_known_by_the_counters() -> None:
    views = [
        make.rank(0, nccl("world", 5, 7, kept=1)),
        make.rank(1, nccl("world", 5, 6)),
        make.rank(2, nccl("world", 5, 5)),
    ]

    found = diagnose(make.snapshot(views, [make.world(0, 1, 2)]))

    assert (found[0].culprit_ranks, found[0].seq) == ("2", 6)
    assert len(found) == 1


def test_rank_that_speaks_of_a_group_of_others_is_no_member_of_it() -> None:
    views = [
        make.rank(0, make.at("pair", 5, 6)),
        make.rank(1, make.at("pair", 5)),
        make.rank(2, make.at("pair", 8, 9)),
    ]

    found = diagnose(make.snapshot(views, [make.group("pair", (0, 1))]))

    assert (found[0].culprit_ranks, found[0].waiting) == ("1", "0")


def test_receive_from_a_rank_that_cannot_be_is_no_wait() -> None:
    calls = tuple(
        wire.Call(op="recv", gid="world", age_s=9.0, peer=peer, seq=1) for peer in (-1, 0, 7)
    )
    view = make.rank(0, make.at("world", 5), calls=calls)

    found = diagnose(make.snapshot([view, make.rank(1)], [make.world(0, 1)]))

    assert found[0].kind in (Kind.NONE, Kind.NO_PROGRESS)


def test_side_of_a_mismatch_that_has_finished_needs_no_path() -> None:
    other = make.at("world", 5)
    entry = make.entry(6, size=9, retired=True)
    finished = msgspec.structs.replace(other, entries=(*other.entries, entry), counter=6)

    views = [waiting(0), make.rank(1, finished)]
    found = diagnose(make.snapshot(views, [make.world(0, 1)]))

    assert found[0].kind is Kind.MISMATCH


def init_wait(expected: int) -> wire.InitWait:
    return wire.InitWait(what="init_process_group", age_s=20.0, expected=expected)


def test_odd_world_size_of_one_waiting_rank_invents_no_missing_ranks() -> None:
    views = [
        make.rank(rank, waits=(init_wait(10**9 if rank == 0 else 4),), is_initialised=False)
        for rank in range(3)
    ]

    found = diagnose(make.snapshot([*views, make.unseen(3)], [], world_size=4))

    assert found[0].kind is Kind.INCOMPLETE_RENDEZVOUS
    assert found[0].culprit_ranks == "3"


def test_rank_that_has_made_calls_does_not_wait_to_be_let_in() -> None:
    liar = make.rank(2, make.at("world", 5, 6), waits=(init_wait(10**9),))
    views = [waiting(0), make.rank(1, make.at("world", 5)), liar]

    found = diagnose(make.snapshot(views, [make.world(0, 1, 2)]))

    assert {one.culprit_ranks for one in found} <= {"1", ""}
    assert found[0].culprit_ranks == "1"


def test_gather_that_a_lost_contributor_left_is_not_over_for_its_root() -> None:
    entries = (make.entry(1, "gather", started=True),)
    front = msgspec.structs.replace(nccl("world", 0, 1), entries=entries, finished=0, started=1)
    counted = wire.GroupBeat(gid="world", counter=1, stall_s=0.5, seq=1, finished=1, started=1)
    views = [
        make.rank(0, front),
        make.rank(1, nccl("world", 0, 0)),
        make.rank(2, counted, link=Link.LOST, age_s=30.0),
    ]

    found = diagnose(make.snapshot(views, [make.world(0, 1, 2)]))

    assert found[0].culprit_ranks == "1"


def test_lost_node_is_suspected_before_a_silent_rank_beside_others_that_are_heard() -> None:
    lost = [
        make.rank(
            rank,
            make.counter_only("world", 5, seq=5, stall_s=0.3),
            link=Link.LOST,
            age_s=30.0,
            node=node,
        )
        for rank, node in ((1, "node-a"), (2, "node-b"), (3, "node-b"))
    ]

    found = diagnose(make.snapshot([waiting(0), *lost], [make.world(0, 1, 2, 3)]))

    assert found[0].culprit_ranks == "2-3"
    assert all(culprit.condition is Condition.NODE_LOST for culprit in found[0].culprits)


def test_rank_whose_numbers_contradict_each_other_does_not_set_the_clock_of_its_group_back() -> (
    None
):
    impossible = make.at("world", 3, make.entry(2**53 + 1))
    others = [make.rank(number, make.at("world", 3, 4)) for number in (0, 1)]

    found = diagnose(make.snapshot([*others, make.rank(2, impossible)], [make.world(0, 1, 2)]))[0]

    assert found.stalled_s >= 12.0
    assert found.confidence < 0.6
