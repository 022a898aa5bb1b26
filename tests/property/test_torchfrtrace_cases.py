"""Cases in which torch's own analyser names the wrong ranks, or none: right here in any order.

Whole path: dumps as each rank's recorder writes them are read by the agent and diagnosed. Ring
sizes, what a process had recorded before, and the order of ranks are drawn at random.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.recorded import Recorder
from tests.unit.server.diagnose import builders as make

from hangwatch_agent import recorder, wire
from hangwatch_server.diagnose import diagnose
from hangwatch_server.model import Activity, Finding, GroupView, Kind, RankView, StackFacts

QUICK = settings(max_examples=12, deadline=None, derandomize=True)
Fill = Callable[[Recorder, int], None]


def view(
    rank: int,
    source: Recorder,
    *,
    stack: StackFacts | None = None,
    calls: tuple[wire.Call, ...] = (),
    others: tuple[wire.GroupBeat, ...] = (),
) -> RankView:
    """A rank as the server sees it after its dump has been read."""
    beats = []
    for name, entries in recorder.parse(source.dump()).items():
        newest = entries[-1].seq
        beats.append(
            wire.GroupBeat(
                gid=name,
                counter=newest,
                stall_s=12.0,
                seq=newest,
                entries=entries,
                entries_age_s=1.0,
                are_entries_current=True,
            )
        )
    return make.rank(rank, *beats, *others, stack=stack, calls=calls)


def first(views: list[RankView], groups: list[GroupView], shuffler: random.Random) -> Finding:
    shuffler.shuffle(views)
    shuffler.shuffle(groups)
    return diagnose(make.snapshot(views, groups))[0]


def offsets(count: int) -> st.SearchStrategy[list[int]]:
    """What each process had recorded before this job's first call."""
    return st.lists(st.integers(0, 5000), min_size=count, max_size=count)


@pytest.mark.parametrize("backend", ["gloo", "nccl"])
@QUICK
@given(
    before=offsets(8),
    sizes=st.lists(st.integers(10, 80), min_size=8, max_size=8),
    shuffler=st.randoms(use_true_random=False),
)
def test_rings_that_begin_at_different_calls_blame_nobody_but_the_culprit(
    backend: str, before: list[int], sizes: list[int], shuffler: random.Random
) -> None:
    """Ranks 4-7 call on a second group as well, so their rings hold fewer calls of the first."""
    views = []
    for rank in range(8):
        source = Recorder(backend, size=sizes[rank], first_id=before[rank])
        for seq in range(462, 502):
            if rank >= 4:
                source.collective("1", seq)
            is_last = seq == 501
            if not (is_last and rank == 5):
                source.collective("0", seq, state="scheduled" if is_last else "completed")
        views.append(view(rank, source))
    groups = [make.group("0", range(8)), make.group("1", range(4, 8))]

    found = first(views, groups, shuffler)

    assert (found.kind, found.culprit_ranks, found.seq) == (Kind.MISSING_RANKS, "5", 501)
    assert found.group is not None
    assert found.group.id == "0"


@pytest.mark.parametrize("backend", ["gloo", "nccl"])
@pytest.mark.parametrize("odd", [0, 1, 3])
@QUICK
@given(before=offsets(4), shuffler=st.randoms(use_true_random=False))
def test_odd_call_is_the_odd_ranks_whichever_is_read_first(
    backend: str, odd: int, before: list[int], shuffler: random.Random
) -> None:
    views = []
    for rank in range(4):
        source = Recorder(backend, first_id=before[rank])
        for seq in range(1, 6):
            source.collective("0", seq)
        op = "broadcast" if rank == odd else "all_reduce"
        source.collective("0", 6, op, state="scheduled")
        views.append(view(rank, source))

    found = first(views, [make.world(0, 1, 2, 3), make.group("0", range(4))], shuffler)

    assert (found.kind, found.culprit_ranks, found.seq) == (Kind.MISMATCH, str(odd), 6)


@QUICK
@given(before=offsets(2), shuffler=st.randoms(use_true_random=False))
def test_two_groups_in_two_orders_are_one_cycle(before: list[int], shuffler: random.Random) -> None:
    """Not two reports of missing ranks that have nothing to do with each other."""
    views = []
    for rank, group in ((0, "0"), (1, "1")):
        source = Recorder("gloo", first_id=before[rank])
        for seq in (1, 2, 3):
            source.collective("0", seq)
            source.collective("1", seq)
        source.collective(group, 4, state="scheduled")
        stack = make.stack(Activity.COLLECTIVE, op="all_reduce")
        views.append(view(rank, source, stack=stack))

    found = first(views, [make.group("0", (0, 1)), make.group("1", (0, 1))], shuffler)

    assert (found.kind, found.culprit_ranks) == (Kind.DEADLOCK, "0-1")
    assert [step.waits_in for step in found.cycle] == ["0 all_reduce #4", "1 all_reduce #4"]


@QUICK
@given(before=offsets(2), shuffler=st.randoms(use_true_random=False))
def test_receive_without_a_send_is_seen_though_no_recorder_has_it(
    before: list[int], shuffler: random.Random
) -> None:
    views = []
    for rank in (0, 1):
        source = Recorder("gloo", first_id=before[rank])
        for seq in (1, 2, 3):
            source.collective("0", seq)
        call = wire.Call(op="recv", gid="0", age_s=12.0, peer=1, seq=1)
        stack = make.stack(Activity.USER_CODE) if rank == 1 else None
        views.append(view(rank, source, calls=(call,) if rank == 0 else (), stack=stack))

    found = first(views, [make.group("0", (0, 1))], shuffler)

    assert (found.kind, found.culprit_ranks, found.waiting) == (Kind.UNMATCHED_P2P, "1", "0")
