"""Who names another root than the rest."""

from __future__ import annotations

import msgspec
import pytest
from tests.unit.server.diagnose import builders as make

from hangwatch_agent import wire
from hangwatch_server.diagnose import diagnose
from hangwatch_server.model import Kind, RankView


def inside(rank: int, op: str, root: int) -> RankView:
    call = wire.Call(op=op, gid="world", age_s=9.0, root=root)
    return make.rank(rank, make.at("world", 5, 6, op=op), calls=(call,))


def gone(rank: int, op: str, root: int | None = None) -> RankView:
    beat = make.at("world", 6, op=op)
    entries = tuple(msgspec.structs.replace(entry, root=root) for entry in beat.entries)
    return make.rank(rank, msgspec.structs.replace(beat, entries=entries))


def named(*views: RankView) -> tuple[Kind, str]:
    found = diagnose(make.snapshot(views, [make.world(*(view.rank for view in views))]))[0]
    return found.kind, found.culprit_ranks


def test_receiver_whose_root_has_left_the_call_is_to_blame() -> None:
    others = [gone(rank, "broadcast") for rank in (0, 2, 3)]

    assert named(*others, inside(1, "broadcast", 2)) == (Kind.MISMATCH, "1")


def test_finished_calls_remember_their_root() -> None:
    """Of a gather only two are left: its true root, and who gathers for itself."""
    others = [gone(rank, "gather", root=0) for rank in (2, 3)]

    found = named(inside(0, "gather", 0), inside(1, "gather", 1), *others)

    assert found == (Kind.MISMATCH, "1")


def test_two_that_name_each_other_are_both_named() -> None:
    assert named(inside(0, "broadcast", 1), inside(1, "broadcast", 0)) == (Kind.MISMATCH, "0-1")


def test_majority_of_three_names_the_odd_root() -> None:
    views = [inside(0, "broadcast", 1), inside(1, "broadcast", 2), inside(2, "broadcast", 1)]

    assert named(*views) == (Kind.MISMATCH, "1")


@pytest.mark.parametrize("op", ["broadcast", "scatter"])
def test_root_that_left_early_is_no_mismatch(op: str) -> None:
    """The root of a broadcast is done at once; that its receivers still wait is nobody's call."""
    kind, culprits = named(gone(0, op), inside(1, op, 0), inside(2, op, 0))

    assert (kind, culprits) == (Kind.STALLED_COLLECTIVE, "")


def test_receiver_that_hands_on_to_an_absent_rank_is_no_mismatch() -> None:
    """gloo broadcasts down a tree: the root and one branch are done, rank 1 waits for its leaf."""
    absent = make.rank(3, make.at("world", 5))

    found = named(gone(0, "broadcast"), inside(1, "broadcast", 0), gone(2, "broadcast"), absent)

    assert found == (Kind.MISSING_RANKS, "3")


def test_contributors_that_left_a_reduce_early_are_no_mismatch() -> None:
    kind, culprits = named(
        inside(0, "reduce", 0), gone(1, "reduce"), make.rank(2, make.at("world", 5))
    )

    assert (kind, culprits) == (Kind.MISSING_RANKS, "2")
