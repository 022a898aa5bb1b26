"""Hard evidence: a finding that needs no waiting counts once it is true in two snapshots."""

from __future__ import annotations

from dataclasses import replace

from hangwatch_server import ranges
from hangwatch_server.detect.memory import Memory
from hangwatch_server.detect.settings import DetectSettings
from hangwatch_server.model import Finding, Kind, Link, RankView, Snapshot

_WORDS = {
    Kind.MISMATCH: "the ranks' calls do not match",
    Kind.STALLED_COLLECTIVE: "a GPU has failed inside the collective",
    Kind.DEADLOCK: "ranks wait for each other in a cycle",
}


def words(kind: Kind) -> str:
    """What was seen, for an incident's history; a process that is gone can leave any other kind."""
    return _WORDS.get(kind, "a process is gone while others wait for it")


def observe(memory: Memory, snapshot: Snapshot, finding: Finding) -> Memory:
    """Start, keep or forget the first sight of a hard finding."""
    if not finding.is_hard or not _is_heard(snapshot, finding):
        return replace(memory, hard_key="", hard_since_s=0.0)
    if finding.key == memory.hard_key:
        return memory
    since_s = snapshot.taken_s - _evident_for_s(snapshot, finding)
    return replace(memory, hard_key=finding.key, hard_since_s=since_s)


def _evident_for_s(snapshot: Snapshot, finding: Finding) -> float:
    """How long ago the last of the entries was taken that this finding rests on.

    That was the first sample: the counters have not moved since. 0 where a rank shows none.
    """
    ranks = {*ranges.parse(finding.waiting), *ranges.parse(finding.culprit_ranks)}
    ages = [_entries_age_s(snapshot.ranks.get(rank)) for rank in ranks]
    return min(ages, default=0.0)


def _entries_age_s(view: RankView | None) -> float:
    if view is None or view.beat is None:
        return 0.0
    ages = (g.entries_age_s for g in view.beat.groups if g.are_entries_current)
    taken = [age for age in ages if age is not None]
    return min(taken) + view.age_s if taken else 0.0


def is_proven(memory: Memory, snapshot: Snapshot, finding: Finding, s: DetectSettings) -> bool:
    return bool(
        finding.is_hard
        and memory.hard_key == finding.key
        and _is_heard(snapshot, finding)
        and snapshot.taken_s - memory.hard_since_s >= s.hard_apart_s
    )


def _is_heard(snapshot: Snapshot, finding: Finding) -> bool:
    """Two snapshots of the same old heartbeat are one sample: someone who waits must be heard."""
    waiting = ranges.parse(finding.waiting)
    views = [snapshot.ranks[rank] for rank in waiting if rank in snapshot.ranks]
    return not waiting or any(view.link is Link.LIVE for view in views)
