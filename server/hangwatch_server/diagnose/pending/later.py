"""Later calls of a group, entered while an earlier one is not finished, that hide a second culprit.

A rank that issues calls without waiting for each is in several of one group at once. The oldest
tells of who never came to it. Who came to that one and then stopped, in its own code or for good,
is missing from a later one alone. Who is merely behind waits in the oldest and is no culprit, so
later calls are looked at only where somebody that is in an earlier one stands elsewhere for sure.
"""

from __future__ import annotations

from hangwatch_agent.wire import Entry
from hangwatch_server.diagnose.process import Fate
from hangwatch_server.diagnose.survey import Survey

_STOPPED = frozenset({Fate.GONE, Fate.STOPPED})


def add(
    survey: Survey,
    fronts: dict[int, tuple[Entry, ...]],
    waiting: dict[int, dict[int, Entry | None]],
) -> None:
    """Put the first call that each such rank did not come to into `waiting`, with who is in it."""
    newest = max((mine[-1].seq for mine in fronts.values()), default=-1)
    behind = [rank for rank, mine in fronts.items() if mine[-1].seq < newest]
    stopped = [rank for rank in behind if _has_stopped(survey, rank)]
    if not stopped:
        return
    by_seq: dict[int, dict[int, Entry | None]] = {}
    for rank, mine in fronts.items():
        for front in mine:
            by_seq.setdefault(front.seq, {})[rank] = front
    for rank in stopped:
        seq = min(seq for seq in by_seq if seq > fronts[rank][-1].seq)
        waiting.setdefault(seq, {}).update(by_seq[seq])


def _has_stopped(survey: Survey, rank: int) -> bool:
    return survey.fate(rank) in _STOPPED or survey.stands_elsewhere(rank)
