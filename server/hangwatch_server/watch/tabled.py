"""The tables of a job as they were made, and for how long they are good enough to show.

A small job's are those of its newest look. A large job's cost a good part of a second, each second
and on the one core that also takes in heartbeats: they are shown for a few times as long as they
took, unless the finding changes. Pure: the time is passed in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from hangwatch_server.diagnose import Tables
from hangwatch_server.model import Finding, Link, Snapshot

COSTS_KEPT = 8  # so at most a ninth of a core is spent on the tables of one job
LONGEST_S = 4.0
# Where they say how long something waits or was not heard, which pages let grow by themselves and
# must not see jump back (pages.pieces).
LONGEST_WITH_AGES_S = 1.0

Told = tuple[str, str, str]  # kind, culprits, waiting


class Looked(Protocol):
    """What is asked of `watched.Watched`."""

    @property
    def is_large(self) -> bool: ...
    @property
    def snapshot(self) -> Snapshot: ...
    @property
    def finding(self) -> Finding: ...


def told(finding: Finding) -> Told:
    """What of a finding the tables show."""
    return finding.kind, finding.culprit_ranks, finding.waiting


@dataclass(frozen=True, slots=True)
class Tabled:
    tables: Tables
    snapshot: Snapshot
    told: Told
    made_s: float
    cost_s: float
    has_ages: bool

    def holds(self, watched: Looked, now_s: float) -> bool:
        """Whether to show them still."""
        if watched.snapshot is self.snapshot:
            return True
        is_same = (watched.snapshot.attempt, told(watched.finding)) == (
            self.snapshot.attempt,
            self.told,
        )
        longest_s = LONGEST_WITH_AGES_S if self.has_ages else LONGEST_S
        kept_s = min(longest_s, COSTS_KEPT * self.cost_s)
        return watched.is_large and is_same and now_s - self.made_s < kept_s


def of(
    tables: Tables, snapshot: Snapshot, finding: Finding, begun_s: float, made_s: float
) -> Tabled:
    has_ages = any(row.waiting for row in tables.groups) or any(
        row.waits_s is not None or row.link is not Link.LIVE for row in tables.ranks
    )
    return Tabled(tables, snapshot, told(finding), made_s, made_s - begun_s, has_ages)
