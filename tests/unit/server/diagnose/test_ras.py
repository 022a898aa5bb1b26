"""What follows from NCCL RAS alone, and what does not."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from tests.unit.server.diagnose import builders

from hangwatch_agent.wire import Depth, RasState
from hangwatch_server.diagnose import diagnose, group_rows, rank_rows
from hangwatch_server.model import (
    Condition,
    Finding,
    GroupView,
    Kind,
    RasMember,
    RasView,
    Snapshot,
)

GID = "ras-ae94"
OPS = ("broadcast", "all_reduce")


def counts(*all_reduces: int) -> dict[int, RasMember]:
    return {
        rank: RasMember(rank=rank, state=RasState.RUNNING, counts=(2, count))
        for rank, count in enumerate(all_reduces)
    }


def heard(
    members: Mapping[int, RasMember],
    *,
    unchanged_s: float = 12.0,
    same_answers: int = 2,
    facts: Mapping[int, str] | None = None,
) -> Snapshot:
    """A job of bare ranks that NCCL RAS tells of."""
    states = facts or {}
    ranks = [
        builders.rank(rank, depth=Depth.BARE, facts=builders.process(states.get(rank, "S")))
        for rank in sorted(members)
    ]
    view = RasView(
        gid=GID,
        hash="ae94423cfbb2ef4a",
        size=len(members),
        ops=OPS,
        members=tuple(members[rank] for rank in sorted(members)),
        unmapped=0,
        version="2.30.7",
        age_s=3.0,
        unchanged_s=unchanged_s,
        same_answers=same_answers,
    )
    group = GroupView(
        gid=GID, name="communicator ae94", description="", backend="nccl", ranks=tuple(members)
    )
    found = builders.snapshot(ranks, [])
    return dataclasses.replace(found, ras=(view,), groups={**found.groups, GID: group})


def first(snapshot: Snapshot) -> Finding:
    return diagnose(snapshot)[0]


def test_rank_that_launched_one_call_less_is_the_culprit() -> None:
    finding = first(heard(counts(30, 30, 29, 30)))

    assert (finding.kind, finding.culprit_ranks, finding.waiting) == (
        Kind.MISSING_RANKS, "2", "0-1,3",
    )  # fmt: skip
    assert (finding.op, finding.seq) == ("all_reduce", 30)
    assert any("NCCL RAS" in item.text for item in finding.evidence)


def test_ras_alone_is_less_sure_than_a_probe() -> None:
    probed = builders.snapshot(
        [builders.rank(rank, builders.at("g", 29, None if rank == 2 else 30)) for rank in range(4)],
        [builders.group("g", range(4))],
    )

    assert first(heard(counts(30, 30, 29, 30))).confidence < first(probed).confidence


def test_counts_that_were_said_once_prove_nothing() -> None:
    assert first(heard(counts(30, 29), same_answers=1)).kind is not Kind.MISSING_RANKS
    assert first(heard(counts(30, 29), unchanged_s=1.0)).kind is not Kind.MISSING_RANKS


def test_equal_counts_blame_nobody() -> None:
    finding = first(heard(counts(30, 30, 30)))

    assert finding.culprits == ()
    assert finding.kind in (Kind.NONE, Kind.NO_PROGRESS)


def test_process_that_does_not_answer_and_is_stopped_is_named_with_its_condition() -> None:
    members = counts(30, 30, 30)
    members[1] = RasMember(rank=1, state=RasState.UNRESPONSIVE)

    finding = first(heard(members, facts={1: "T"}))

    assert finding.culprit_ranks == "1"
    assert finding.culprits[0].condition is Condition.STOPPED


def test_rank_that_ras_has_given_up_is_absent() -> None:
    members = counts(30, 30, 30)
    members[2] = RasMember(rank=2, state=RasState.DEAD)

    assert first(heard(members)).culprit_ranks == "2"


def test_rank_that_has_left_the_communicator_is_absent() -> None:
    members = counts(30, 30, 30)
    members[0] = RasMember(rank=0, state=RasState.LEFT)

    assert first(heard(members)).culprit_ranks == "0"


def test_as_many_calls_of_another_kind_are_a_mismatch() -> None:
    members = counts(30, 30, 30, 30)
    members[3] = RasMember(rank=3, state=RasState.RUNNING, counts=(3, 29))

    finding = first(heard(members))

    assert (finding.kind, finding.culprit_ranks) == (Kind.MISMATCH, "3")


def test_nccl_s_own_error_on_a_culprit_is_told() -> None:
    members = counts(30, 30, 29)
    members[2] = dataclasses.replace(members[2], error="unhandled CUDA error")

    evidence = first(heard(members)).evidence

    assert any("unhandled CUDA error" in item.text for item in evidence)


def test_group_of_a_communicator_shows_who_is_behind() -> None:
    (row,) = group_rows(heard(counts(30, 30, 29)))

    assert (row.behind, row.waiting, row.op) == ("2", "0-1", "all_reduce")


def test_bare_rank_that_ras_tells_of_is_shown_at_that_depth() -> None:
    told = heard(counts(30, 30, 29))

    row = rank_rows(told, first(told))[2]

    assert row.depth is Depth.RAS
    assert "hangwatch run" in row.lacks[0]


def test_probe_s_word_stands_where_all_members_have_one() -> None:
    ranks = [builders.rank(rank, builders.at("g", 30, stall_s=0.1)) for rank in range(3)]
    probed = builders.snapshot(ranks, [builders.group("g", range(3))])
    told = dataclasses.replace(probed, ras=heard(counts(30, 30, 29)).ras)

    assert first(told).kind is Kind.NONE


def test_ras_says_of_an_unknown_member_that_it_is_behind() -> None:
    ranks = [builders.rank(rank, builders.at(GID, 29, 30)) for rank in range(3)]
    ranks.append(builders.rank(3, depth=Depth.BARE))
    group = builders.group(GID, range(4))
    mixed = dataclasses.replace(
        builders.snapshot(ranks, [group]), ras=heard(counts(30, 30, 30, 29)).ras
    )

    finding = first(mixed)

    assert (finding.kind, finding.culprit_ranks) == (Kind.MISSING_RANKS, "3")
