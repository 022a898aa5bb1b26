"""Members that make different calls at the same place of a group."""

from __future__ import annotations

from tests.unit.server.diagnose import builders as make

from hangwatch_agent import wire
from hangwatch_server.diagnose import diagnose
from hangwatch_server.model import Activity, Kind


def test_minority_is_wrong() -> None:
    views = [make.rank(r, make.at("world", 5, 6)) for r in (0, 1, 3)]
    odd = make.rank(2, make.at("world", 5, 6, op="broadcast"))

    found = diagnose(make.snapshot([*views, odd], [make.world(0, 1, 2, 3)]))[0]

    assert (found.kind, found.culprit_ranks, found.seq) == (Kind.MISMATCH, "2", 6)
    assert found.is_hard
    assert found.confidence == 0.95
    assert [(s.ranks, s.is_odd) for s in found.sides] == [("0-1,3", False), ("2", True)]


def test_mismatch_of_ranks_that_go_on_elsewhere_needs_more_than_one_look() -> None:
    """Nobody waits in the asynchronous calls yet: both ranks still call on another group."""
    busy = make.counter_only("tp", 40, stall_s=0.3)
    views = [
        make.rank(0, make.at("world", 5, 6), busy),
        make.rank(1, make.at("world", 5, 6, op="broadcast"), busy),
    ]
    groups = [make.world(0, 1), make.group("tp", (0, 1))]

    found = diagnose(make.snapshot(views, groups))[0]

    assert (found.kind, found.is_hard) == (Kind.MISMATCH, False)


def test_verdict_does_not_depend_on_which_rank_is_first() -> None:
    views = [make.rank(r, make.at("world", 5, 6)) for r in (1, 2, 3)]
    odd = make.rank(0, make.at("world", 5, 6, op="broadcast"))

    found = diagnose(make.snapshot([odd, *views], [make.world(0, 1, 2, 3)]))[0]

    assert found.culprit_ranks == "0"


def test_tie_of_two_names_both() -> None:
    """Uneven inputs, as users reported them: join()'s all_reduce meets a barrier at #29."""
    views = [
        make.rank(0, make.at("world", 28, make.entry(29, size=1))),
        make.rank(1, make.at("world", 28, make.entry(29, "barrier"))),
    ]

    found = diagnose(make.snapshot(views, [make.world(0, 1)]))[0]

    assert (found.kind, found.culprit_ranks, found.seq) == (Kind.MISMATCH, "0-1", 29)
    assert found.confidence == 0.55
    assert found.is_hard
    assert any("inside model.join()" in hint for hint in found.hints)
    assert "rank 0 in all_reduce [1] float against rank 1 in barrier" in found.summary


def test_barrier_after_the_loop_gives_the_uneven_inputs_hint_alone() -> None:
    views = [
        make.rank(0, make.at("world", 10, make.entry(11, "barrier"))),
        make.rank(
            1,
            make.at("world", 10, make.entry(11, size=2)),
            stack=make.stack(Activity.COLLECTIVE, is_in_backward=True),
        ),
    ]

    found = diagnose(make.snapshot(views, [make.world(0, 1)]))[0]

    assert (found.kind, found.culprit_ranks, found.seq) == (Kind.MISMATCH, "0-1", 11)
    assert any("uneven inputs" in hint for hint in found.hints)
    assert not any("inside model.join()" in hint for hint in found.hints)


def test_sibling_group_breaks_a_tie() -> None:
    views = [
        make.rank(0, make.at("dp-0", 5, make.entry(6, size=8))),
        make.rank(1, make.at("dp-0", 5, make.entry(6, size=4))),
        make.rank(2, make.at("dp-1", 6)),
        make.rank(3, make.at("dp-1", 6)),
    ]
    groups = [make.group("dp-0", (0, 1)), make.group("dp-1", (2, 3))]

    found = diagnose(make.snapshot(views, groups))[0]

    assert found.culprit_ranks == "0"
    assert found.confidence == 0.95


def test_different_shape_is_a_mismatch_and_uneven_splits_are_not() -> None:
    def found(op: str) -> Kind:
        views = [
            make.rank(0, make.at("world", 5, make.entry(6, op, size=4))),
            make.rank(1, make.at("world", 5, make.entry(6, op, size=8))),
        ]
        return diagnose(make.snapshot(views, [make.world(0, 1)]))[0].kind

    assert found("all_reduce") is Kind.MISMATCH
    assert found("all_to_all") is Kind.STALLED_COLLECTIVE


def test_different_dtype_is_a_mismatch() -> None:
    views = [
        make.rank(0, make.at("world", 5, make.entry(6, dtype="Float"))),
        make.rank(1, make.at("world", 5, make.entry(6, dtype="Long"))),
    ]

    assert diagnose(make.snapshot(views, [make.world(0, 1)]))[0].kind is Kind.MISMATCH


def test_different_root_is_a_mismatch() -> None:
    def view(rank: int, root: int) -> object:
        call = wire.Call(op="broadcast", gid="world", age_s=9.0, root=root)
        return make.rank(rank, make.at("world", 5, 6, op="broadcast"), calls=(call,))

    views = [view(0, 0), view(1, 0), view(2, 1)]

    found = diagnose(make.snapshot(views, [make.world(0, 1, 2)]))[0]  # type: ignore[arg-type]

    assert (found.kind, found.culprit_ranks) == (Kind.MISMATCH, "2")


def test_mismatched_call_that_finished_by_luck_is_still_found() -> None:
    """Rank 1's broadcast finished at its root at once; it waits one place further on."""
    lucky = wire.GroupBeat(
        gid="world",
        counter=7,
        stall_s=12.0,
        entries=(
            make.entry(5, retired=True),
            make.entry(6, "broadcast", retired=True),
            make.entry(7),
        ),
        entries_age_s=1.0,
        are_entries_current=True,
    )
    views = [make.rank(r, make.at("world", 5, 6)) for r in (0, 2, 3)]

    found = diagnose(make.snapshot([*views, make.rank(1, lucky)], [make.world(0, 1, 2, 3)]))[0]

    assert (found.kind, found.culprit_ranks, found.seq) == (Kind.MISMATCH, "1", 6)


def test_earlier_divergence_is_told_as_evidence() -> None:
    def beat(op: str, *front: wire.Entry) -> wire.GroupBeat:
        return wire.GroupBeat(
            gid="world",
            counter=7,
            stall_s=12.0,
            entries=(make.entry(5, retired=True), make.entry(6, op, retired=True), *front),
            entries_age_s=1.0,
            are_entries_current=True,
        )

    views = [make.rank(0, beat("all_reduce", make.entry(7))), make.rank(1, beat("barrier"))]

    found = diagnose(make.snapshot(views, [make.world(0, 1)]))[0]

    assert found.kind is Kind.MISSING_RANKS
    assert any("first differ at #6" in item.text for item in found.evidence)
