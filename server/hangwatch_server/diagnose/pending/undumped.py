"""Ranks whose newest calls are counted and not written out: no entry says what became of them.

A rank's counters come every second, its recorder's entries only once it stands still. Until then it
may be inside the newest call that it has entered, or past it: unless its peers or its stack say
which, its place is unknown, and that it has not come to some other call accuses it of nothing.
"""

from __future__ import annotations

from hangwatch_agent.wire import Entry
from hangwatch_server.diagnose.pending import proofs
from hangwatch_server.diagnose.process import Fate
from hangwatch_server.diagnose.standing import Standing
from hangwatch_server.diagnose.survey import Survey


def add(
    survey: Survey,
    members: dict[int, Standing],
    waiting: dict[int, dict[int, Entry | None]],
) -> None:
    """Who has entered a call that nobody has finished is in it, even while no entry says so."""
    finished = max([held.completed for held in members.values()])
    undumped = {
        rank: held.entered
        for rank, held in members.items()
        if held.entered is not None
        and not held.fronts
        and not held.group.are_entries_current
        and held.stall_s >= survey.settings.stable_after_s
        and survey.fate(rank) is Fate.ALIVE
    }
    for seq, have in waiting.items():
        if seq > finished:
            inside = (rank for rank, entered in undumped.items() if entered >= seq)
            have.update(dict.fromkeys(inside))


def may_be_inside(survey: Survey, rank: int) -> bool:
    """Whether it may wait in a call of which it tells no more than that it has entered it."""
    if rank not in survey.standings.undumped or survey.is_outside(rank):
        return False
    beat = survey.beat(rank)
    assert beat is not None  # it has told of a group
    return any(_is_open(survey, rank, group.gid) for group in beat.groups)


def _is_open(survey: Survey, rank: int, gid: str) -> bool:
    group = survey.snapshot.groups.get(gid)
    held = survey.standings[gid].get(rank)
    if group is None or rank not in group.ranks or held is None:
        return False
    if held.group.are_entries_current or not held.is_sane:
        return False
    if held.entered is None or not held.is_exact:
        return True
    return held.completed < held.entered and proofs.bound_of(survey, gid).seq < held.entered
