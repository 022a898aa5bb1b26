"""What peers prove about a member, and counters that cannot be true."""

from __future__ import annotations

import msgspec
import pytest
from tests.unit.server.diagnose import builders as make

from hangwatch_agent import wire
from hangwatch_server.diagnose import diagnose
from hangwatch_server.model import Kind, Link, Snapshot

WORLD = [make.world(0, 1, 2, 3)]


def with_rank_three(group: wire.GroupBeat) -> Snapshot:
    views = [make.rank(r, make.at("world", 5, 6)) for r in range(3)]
    return make.snapshot([*views, make.rank(3, group)], WORLD)


@pytest.mark.parametrize(
    "odd",
    [
        make.at("world", 2**62, 2**62 + 1),
        make.at("world", -9, -8),
        msgspec.structs.replace(make.at("world", 5), finished=900, seq=5),
        msgspec.structs.replace(make.at("world", 5), stall_s=float("nan")),
        msgspec.structs.replace(make.at("world", 5), stall_s=-1e9),
        make.at("world", 50_000, 50_001),
    ],
    ids=["huge", "negative", "finished before begun", "no number", "from the future", "far ahead"],
)
def test_counters_that_cannot_be_true_make_no_sure_verdict(odd: wire.GroupBeat) -> None:
    found = diagnose(with_rank_three(odd))[0]

    assert found.confidence < 0.6
    assert not found.is_hard
    assert set(found.culprit_ranks.split(",")) <= {"", "3"}


def test_rank_that_is_behind_what_its_peers_have_finished_is_not_believed() -> None:
    """Rank 3 says, for 12 s, that it entered #2; the others have finished #5 with it."""
    found = diagnose(with_rank_three(make.at("world", 2)))[0]

    assert found.confidence < 0.6
    assert "cannot be true" in " ".join(item.text for item in found.evidence)


def test_rank_whose_counters_are_believed_is_named_surely() -> None:
    found = diagnose(with_rank_three(make.at("world", 5)))[0]

    assert (found.culprit_ranks, found.confidence >= 0.8) == ("3", True)


def test_collective_that_a_dead_rank_never_entered_was_aborted_and_not_finished() -> None:
    """Rank 2's call ended with an error when rank 3 died; ranks 0 and 1 still stand in it."""
    views = [
        make.rank(0, make.at("world", 5, 6)),
        make.rank(1, make.at("world", 5, 6)),
        make.rank(2, make.at("world", 6)),
        make.rank(3, make.at("world", 5), facts=make.process("gone", exit_signal=9)),
    ]

    found = diagnose(make.snapshot(views, WORLD))[0]

    assert (found.kind, found.culprit_ranks) == (Kind.MISSING_RANKS, "3")
    assert found.is_hard


def test_all_to_all_that_a_peer_finished_proves_nothing_about_a_silent_rank() -> None:
    views = [
        make.rank(0, make.at("world", 5, 6, op="all_to_all")),
        make.rank(1, make.at("world", 6, op="all_to_all")),
        make.rank(2, make.at("world", 4, op="all_to_all"), link=Link.LOST, age_s=30.0),
    ]

    found = diagnose(make.snapshot(views, [make.world(0, 1, 2)]))[0]

    assert found.culprit_ranks == "2"


@pytest.mark.parametrize("turn", [1, 2])
def test_ring_that_is_written_out_from_its_middle_changes_nothing(turn: int) -> None:
    def hang(turned: int) -> Snapshot:
        views = []
        for r in range(4):
            group = make.at("world", 5, 6) if r != 1 else make.at("world", 5)
            entries = group.entries[turned:] + group.entries[:turned]
            views.append(make.rank(r, msgspec.structs.replace(group, entries=entries)))
        return make.snapshot(views, WORLD)

    assert diagnose(hang(turn)) == diagnose(hang(0))


def test_record_ids_of_different_processes_are_never_compared() -> None:
    def hang(step: int) -> Snapshot:
        views = []
        for r in range(4):
            group = make.at("world", 5, 6) if r != 1 else make.at("world", 5)
            entries = tuple(
                msgspec.structs.replace(entry, record_id=entry.record_id + step * r * 977)
                for entry in group.entries
            )
            views.append(make.rank(r, msgspec.structs.replace(group, entries=entries)))
        return make.snapshot(views, WORLD)

    assert diagnose(hang(1)) == diagnose(hang(0))
