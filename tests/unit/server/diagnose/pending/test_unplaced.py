"""Ranks that wait in some collective of which nothing tells which: they are accused of nothing."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from tests.unit.server.diagnose import builders as make

from hangwatch_agent import wire
from hangwatch_server.diagnose import diagnose
from hangwatch_server.model import Activity, Condition, Finding, Kind, RankView, StackFacts

WORLD = [make.world(0, 1, 2, 3)]
INSIDE = make.stack(Activity.COLLECTIVE, op="all_reduce", same_leaf_captures=4, same_leaf_s=12.0)
SILENT_FACTS = [{"is_unresponsive": True}, {"is_gil_held": True}]


def unread(facts: dict[str, bool], stack: StackFacts | None, silent_s: float = 90.0) -> RankView:
    """Rank 3, whose record was last read `silent_s` ago, when it had entered #10."""
    old = msgspec.structs.replace(make.at("world", 10), stall_s=silent_s)
    process = make.process(**facts)
    return make.rank(3, old, facts=process, beat_age_s=silent_s, stack=stack)


def beside_waiting_peers(last: RankView, *, missing: tuple[int, ...] = ()) -> Finding:
    """Ranks 0-2 finished #20 with it and wait in #21 for 12 s, but for those that are `missing`."""
    peers = [make.rank(r, make.at("world", 20, None if r in missing else 21)) for r in range(3)]
    return diagnose(make.snapshot([*peers, last], WORLD))[0]


@pytest.mark.parametrize("facts", SILENT_FACTS)
def test_rank_that_went_on_after_its_record_was_lost_and_is_seen_waiting_is_not_named(
    facts: dict[str, bool],
) -> None:
    found = beside_waiting_peers(unread(facts, INSIDE))

    assert (found.kind, found.culprits) == (Kind.STALLED_COLLECTIVE, ())
    assert found.confidence < 0.5
    assert found.summary.startswith("No rank is known to be missing from all_reduce #21")
    assert "Rank 3 waits in a collective too" in " ".join(item.text for item in found.evidence)


@pytest.mark.parametrize("facts", SILENT_FACTS)
def test_rank_whose_silence_explains_nothing_leaves_the_blame_to_who_is_proven_missing(
    facts: dict[str, bool],
) -> None:
    found = beside_waiting_peers(unread(facts, None), missing=(2,))

    assert (found.kind, found.culprit_ranks) == (Kind.MISSING_RANKS, "2")


def test_rank_that_went_on_after_its_record_was_lost_is_only_presumed_to_be_missing() -> None:
    found = beside_waiting_peers(unread({"is_unresponsive": True}, None))

    assert found.culprit_ranks == "3"
    assert found.is_presumed
    assert "is not known to have entered" in found.summary


def test_rank_that_fell_silent_as_the_others_came_to_stand_is_named() -> None:
    """Its record is a second old when it takes the lock, and five calls behind."""
    held = replace(unread({"is_gil_held": True}, None, silent_s=13.0), age_s=0.2)
    held = replace(held, beat=with_counters(held, make.at("world", 15, stall_s=13.2)))

    found = beside_waiting_peers(held)

    assert (found.kind, found.culprit_ranks) == (Kind.MISSING_RANKS, "3")
    assert found.culprits[0].condition is Condition.GIL_HELD
    assert found.confidence >= 0.85
    assert not found.is_presumed


def with_counters(view: RankView, group: wire.GroupBeat) -> wire.RankBeat:
    assert view.beat is not None
    return msgspec.structs.replace(view.beat, groups=(group,))


def test_rank_without_a_probe_that_waits_in_a_collective_is_not_named() -> None:
    bare = make.rank(3, depth=wire.Depth.BARE, is_initialised=False, stack=INSIDE)

    found = beside_waiting_peers(bare)

    assert (found.kind, found.culprits) == (Kind.STALLED_COLLECTIVE, ())


def test_culprit_whose_stack_waits_where_none_is_seen_is_never_named_surely() -> None:
    """Its numbers say that it never came, and nothing in its process answers."""
    held = replace(unread({"is_unresponsive": True}, INSIDE, silent_s=13.0), age_s=0.2)

    found = beside_waiting_peers(held)

    assert found.confidence < 0.6


class TestOneGroupUnderTwoEpochs:
    """Rank 3 loaded its probe late, and counts one group less of that name."""

    SEEN = replace(make.group("g1", (0, 1, 2, 3), name="tp"), epoch=2)
    LATE = replace(make.group("g2", (0, 1, 2, 3), name="tp"), epoch=1)

    def found(self, views: list[RankView]) -> list[Finding]:
        late = make.rank(3, make.at("g2", 10, 11))
        return diagnose(make.snapshot([*views, late], [self.SEEN, self.LATE]))

    def test_members_that_wait_in_both_are_no_cycle_and_nobody_is_named(self) -> None:
        found = self.found([make.rank(r, make.at("g1", 10, 11)) for r in range(3)])

        assert {item.kind for item in found} == {Kind.STALLED_COLLECTIVE}
        assert not any(item.culprits for item in found)

    def test_member_that_came_to_neither_is_named_alone(self) -> None:
        views = [make.rank(r, make.at("g1", 10, 11 if r < 2 else None)) for r in range(3)]

        found = self.found(views)[0]

        assert (found.kind, found.culprit_ranks, found.waiting) == (
            Kind.MISSING_RANKS,
            "2",
            "0-1,3",
        )

    def test_member_that_is_seen_outside_is_missing_whatever_it_waits_in(self) -> None:
        outside = make.stack(Activity.DATALOADER)
        views = [make.rank(r, make.at("g1", 10, 11)) for r in range(3)]
        late = make.rank(3, make.at("g2", 10, 11), stack=outside)

        found = diagnose(make.snapshot([*views, late], [self.SEEN, self.LATE]))[0]

        assert (found.kind, found.culprit_ranks) == (Kind.MISSING_RANKS, "3")
