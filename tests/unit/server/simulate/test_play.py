"""A simulated job on its clock: what its ranks are said to do before and after the fault."""

from __future__ import annotations

import pytest

from hangwatch_agent import wire
from hangwatch_server.model import Kind
from hangwatch_server.simulate import faults
from hangwatch_server.simulate.faults import Fault
from hangwatch_server.simulate.play import Play

LAUNCH = wire.Launch(key="k", name="n")
HANGING = [fault for fault in Fault if fault is not Fault.HEALTHY]


def play(fault: Fault, ranks: int = 64, nodes: int = 8) -> Play:
    return Play(faults.scene(fault, ranks, nodes), LAUNCH, fault_after_s=20.0)


@pytest.mark.parametrize(
    ("ranks", "shape"),
    [(1, (1, 1, 1)), (2, (2, 1, 1)), (8, (2, 2, 2)), (64, (8, 4, 2)), (4096, (8, 64, 8)),
     (16384, (8, 256, 8)), (7, (1, 7, 1))],
)  # fmt: skip
def test_mesh_has_all_ranks(ranks: int, shape: tuple[int, int, int]) -> None:
    assert faults.shape(ranks) == shape


def test_members_of_a_group_agree_while_the_job_moves() -> None:
    playing = play(Fault.DATALOADER)

    seqs: dict[str, set[int | None]] = {}
    for rank in range(64):
        for group in playing.beat(rank, 7.3).groups:
            seqs.setdefault(group.gid, set()).add(group.seq)

    assert all(len(found) == 1 for found in seqs.values())
    assert playing.beat(0, 7.3).step == 14


@pytest.mark.parametrize("fault", HANGING)
def test_counters_never_go_back_at_the_fault(fault: Fault) -> None:
    playing = play(fault)

    for rank in range(64):
        before = {group.gid: group.counter for group in playing.beat(rank, 19.9).groups}
        after = {group.gid: group.counter for group in playing.beat(rank, 23.0).groups}
        assert all(after[gid] >= count for gid, count in before.items())


@pytest.mark.parametrize("fault", HANGING)
def test_somebody_waits_and_all_culprits_are_named_by_the_scene(fault: Fault) -> None:
    playing = play(fault)

    unfinished = {
        rank
        for rank in range(64)
        for group in playing.beat(rank, 30.0).groups
        if group.entries and not group.entries[-1].is_retired
    }

    assert unfinished
    assert playing.scene.culprits
    is_absent = playing.scene.kind is Kind.MISSING_RANKS
    assert unfinished.isdisjoint(playing.scene.culprits) is is_absent


def test_entries_come_once_a_probe_would_have_dumped_them() -> None:
    playing = play(Fault.MISMATCH)

    early = playing.beat(0, 21.0).groups
    late = playing.beat(0, 23.0).groups

    assert not any(group.entries for group in early)
    assert all(group.are_entries_current for group in late)
    assert all(group.entries[-1].seq == group.seq for group in late)


def test_only_the_lost_node_is_gone_and_only_after_the_fault() -> None:
    playing = play(Fault.NODE_LOST)

    assert not any(playing.is_gone(node, 19.0) for node in range(8))
    assert [node for node in range(8) if playing.is_gone(node, 21.0)] == [5]
    assert playing.scene.culprits == tuple(range(40, 48))


def test_gone_process_is_not_captured() -> None:
    part = play(Fault.KILLED).part("c", 40, (wire.CaptureKind.STACKS,), 25.0)

    assert (part.stacks, part.reason) == ((), "the process is gone")


def test_capture_brings_what_was_asked_for() -> None:
    playing = play(Fault.DATALOADER)

    stacks = playing.part("c", 40, (wire.CaptureKind.STACKS,), 25.0)
    entries = playing.part("c", 0, (wire.CaptureKind.RECORDER,), 25.0)

    assert [process.role for process in stacks.stacks] == ["main", "loader"]
    assert "return self.session.get(shard.url).content" in {
        text.strip() for source in stacks.sources for text in source.lines
    }
    assert stacks.entries == ()
    assert (entries.stacks, entries.sources) == ((), ())
    assert len(entries.entries) == 4
