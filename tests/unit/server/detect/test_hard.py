"""Hard evidence: confirmed by a second snapshot, not by waiting."""

from __future__ import annotations

from dataclasses import replace

import msgspec
from tests.unit.server.detect.builders import (
    NONE,
    Clockwork,
    beat,
    changed,
    finding,
    stuck,
    view,
)

from hangwatch_server.model import Finding, Kind, Link, PathStep, RankView, State


def mismatch(at_s: float) -> Finding:
    """Two ranks disagree; the entries that show it are there two seconds after the stall."""
    if at_s < 3:
        return NONE
    return finding(at_s, kind=Kind.MISMATCH, is_hard=True)


def test_hard_evidence_is_hung_within_five_seconds_of_the_last_progress() -> None:
    clock = Clockwork(stuck(), mismatch).run(8)

    assert clock.first(State.HUNG) == 5


def taken_since(at_s: float) -> list[RankView]:
    """Stuck ranks whose recorder entries were taken two seconds after the stall."""

    def rank(number: int) -> RankView:
        given = beat(number, stall_s=at_s)
        group = msgspec.structs.replace(
            given.groups[0], entries_age_s=max(0.0, at_s - 2.0), are_entries_current=True
        )
        return view(changed(given, groups=(group,)))

    return [rank(number) for number in range(4)]


def test_taking_of_the_entries_is_the_first_sample() -> None:
    clock = Clockwork(taken_since, mismatch).run(8)

    assert clock.first(State.HUNG) == 4


def test_hard_evidence_seen_once_is_not_enough() -> None:
    clock = Clockwork(stuck(), lambda at_s: mismatch(at_s) if at_s % 2 else NONE).run(9)

    assert State.HUNG not in clock.states()


def test_hard_evidence_that_changes_starts_again() -> None:
    def found(at_s: float) -> Finding:
        return finding(at_s, kind=Kind.MISMATCH, is_hard=True, key=f"k{int(at_s)}")

    assert State.HUNG not in Clockwork(stuck(), found).run(9).states()


def test_same_old_heartbeat_twice_is_one_sample() -> None:
    def beats(at_s: float) -> list[RankView]:
        return [view(beat(rank), link=Link.LATE, age_s=at_s) for rank in range(4)]

    assert State.HUNG not in Clockwork(beats, mismatch).run(9).states()


def test_stacks_of_a_cycle_are_wished_for_as_soon_as_it_may_be_one() -> None:
    """Only they make it hard evidence; the ranks of the shortest cycle come first."""
    step = PathStep(rank=3, waits_in="dp all_reduce #5", for_=(0,))

    def deadlock(at_s: float) -> Finding:
        return replace(finding(at_s, (0, 3), kind=Kind.DEADLOCK), cycle=(step,))

    clock = Clockwork(stuck(), deadlock).run(3)

    assert [(at_s, wish.ranks) for at_s, d in clock.log for wish in d.wishes] == [(2.0, (3, 0))]
