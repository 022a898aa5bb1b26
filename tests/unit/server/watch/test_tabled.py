"""How long the tables of a job are shown."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.unit.server.diagnose import builders as make

from hangwatch_server import diagnose
from hangwatch_server.model import Finding, Kind, Link, Snapshot
from hangwatch_server.watch import tabled
from hangwatch_server.watch.tabled import Tabled

CALM = Finding(kind=Kind.NONE)


@dataclass
class Looked:
    snapshot: Snapshot
    finding: Finding = CALM
    is_large: bool = True


def _snapshot(link: Link = Link.LIVE) -> Snapshot:
    return make.snapshot(
        [make.rank(0, make.at("world", 5)), make.rank(1, make.at("world", 5), link=link)],
        [make.world(0, 1)],
    )


def _made(snapshot: Snapshot, cost_s: float = 0.3) -> Tabled:
    tables = diagnose.tables(snapshot, CALM)
    return tabled.of(tables, snapshot, CALM, 10.0 - cost_s, 10.0)


def test_a_large_jobs_tables_are_shown_for_some_times_of_what_they_cost() -> None:
    made, later = _made(_snapshot()), Looked(_snapshot())

    assert made.holds(later, 12.3)
    assert not made.holds(later, 12.5)
    assert not _made(_snapshot(), cost_s=9.0).holds(later, 10.0 + tabled.LONGEST_S)


def test_a_small_jobs_are_those_of_its_newest_look() -> None:
    snapshot = _snapshot()

    assert _made(snapshot).holds(Looked(snapshot, is_large=False), 99.0)
    assert not _made(snapshot).holds(Looked(_snapshot(), is_large=False), 10.1)


def test_another_finding_or_attempt_has_tables_of_its_own() -> None:
    made = _made(_snapshot())
    hung = Finding(kind=Kind.MISSING_RANKS, culprit_ranks="1", waiting="0")

    assert not made.holds(Looked(_snapshot(), finding=hung), 10.1)
    assert not made.holds(Looked(replace(_snapshot(), attempt=7)), 10.1)


def test_tables_that_show_ages_are_not_shown_for_long() -> None:
    made = _made(_snapshot(Link.LATE))

    assert made.holds(Looked(_snapshot(Link.LATE)), 10.9)
    assert not made.holds(Looked(_snapshot(Link.LATE)), 11.1)
