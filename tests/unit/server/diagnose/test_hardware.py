"""What a GPU's errors and load say of a hang."""

from __future__ import annotations

import pytest
from tests.unit.server.diagnose import builders

from hangwatch_agent.wire import GpuFacts
from hangwatch_server.diagnose import diagnose
from hangwatch_server.model import Action, Condition, Finding, Kind, Snapshot, State
from hangwatch_server.watch import advice


def all_inside(*, xid: tuple[int, ...], utilisation: float = 0.0) -> Snapshot:
    """Four ranks inside one all_reduce; rank 2 on another node, its GPU as said."""
    gpus = [GpuFacts(index=rank) for rank in range(4)]
    gpus[2] = GpuFacts(index=2, xid=xid, utilisation=utilisation)
    ranks = [
        builders.rank(
            rank, builders.at("g", 29, 30), gpu=gpus[rank], node="bad" if rank == 2 else "good"
        )
        for rank in range(4)
    ]
    return builders.snapshot(ranks, [builders.group("g", range(4))])


def judged(snapshot: Snapshot) -> tuple[Finding, Action]:
    finding = diagnose(snapshot)[0]
    return finding, advice.action(State.HUNG, finding, snapshot, {}, evidence_stored=True)


@pytest.mark.parametrize("xid", [79, 48, 95])
def test_gpu_that_failed_inside_a_collective_is_hard_evidence_against_its_node(xid: int) -> None:
    finding, action = judged(all_inside(xid=(31, xid)))

    assert (finding.kind, finding.culprit_ranks) == (Kind.STALLED_COLLECTIVE, "2")
    assert finding.is_hard
    assert f"Xid {xid}" in finding.culprits[0].detail
    assert (action.advice, action.exclude_nodes) == ("restart_excluding", ("bad",))


@pytest.mark.parametrize("xid", [(), (13,), (31, 43)])
def test_error_that_a_program_can_raise_blames_nobody(xid: tuple[int, ...]) -> None:
    finding, action = judged(all_inside(xid=xid))

    assert finding.culprits == ()
    assert not finding.is_hard
    assert action.exclude_nodes == ()


def test_busy_gpu_that_has_not_started_the_collective_is_said_to_be_busy() -> None:
    gpu = GpuFacts(index=2, utilisation=100.0)
    ranks = [
        builders.rank(rank, builders.at("g", 29, builders.entry(30, started=rank != 2)), gpu=gpu)
        for rank in range(4)
    ]
    snapshot = builders.snapshot(ranks, [builders.group("g", range(4), backend="nccl")])

    (culprit,) = diagnose(snapshot)[0].culprits

    assert (culprit.rank, culprit.condition) == (2, Condition.GPU_BUSY)
    assert "busy" in culprit.detail
