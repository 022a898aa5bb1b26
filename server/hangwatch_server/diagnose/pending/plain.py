"""The everyday group of a stuck job, in one pass: some members wait in a call that others have not
come to, all of them are heard, alive and well, and nothing contradicts anything.

Tens of thousands of groups of a large job look like that, and a standing for each member with all
that peers may prove of it takes longer than a diagnosis may. Says exactly what `collectives` says
with all its care, and nothing (None) of any group that is not as plain as that.
"""

from __future__ import annotations

from math import inf

from hangwatch_agent.wire import Entry, GroupBeat
from hangwatch_server.diagnose import bounds, standing
from hangwatch_server.diagnose.pending import proofs
from hangwatch_server.diagnose.pending.ops import Form, PendingOp, first_name
from hangwatch_server.diagnose.standing import Report
from hangwatch_server.diagnose.survey import Survey
from hangwatch_server.model import GroupView

# What it has entered, what it has finished, and the oldest entry that it has not.
Place = tuple[int, int, Entry | None]


def pending(survey: Survey, group: GroupView, reports: list[Report]) -> PendingOp | None:
    """The one operation that this group waits in; None where more care is needed."""
    if len(reports) != len(group.ranks):
        return None
    well = survey.well
    have: dict[int, Entry | None] = {}
    absent: dict[int, int] = {}  # rank -> the last call that it entered
    waits_in = completed = newest = -1
    stalled_s = inf
    for (rank, age_s, is_live, own), member in zip(reports, group.ranks, strict=True):
        place = _place(own) if rank == member and is_live and rank in well else None
        if place is None:
            return None
        entered, finished, front = place
        if front is None:
            absent[rank] = entered
        elif have and (front.seq != waits_in or entered != newest):
            return None  # of those in later calls too, some may have stopped in between
        else:
            have[rank] = front
            waits_in, newest = front.seq, entered
        if finished > completed:
            completed = finished
        if own.stall_s + age_s < stalled_s:
            stalled_s = own.stall_s + age_s
    if not have or stalled_s < survey.settings.stable_after_s:
        return None
    if not survey.standings.undumped.isdisjoint(absent):
        return None
    if not _is_consistent(waits_in, completed, absent):
        return None
    return PendingOp(
        form=Form.COLLECTIVE,
        op=first_name(have),
        gid=group.gid,
        seq=waits_in,
        have=have,
        absent=tuple(absent),
        stalled_s=stalled_s,
    )


def _is_consistent(waits_in: int, completed: int, absent: dict[int, int]) -> bool:
    """Whether nobody claims to be past a call that others claim not to have come to."""
    if not absent:
        return completed < waits_in
    entered = absent.values()
    limit = max(completed, waits_in - proofs.FAR_AHEAD)
    return limit <= min(entered) and max(entered) < waits_in and completed < waits_in


def _place(own: GroupBeat) -> Place | None:
    """None unless its entries are current and in order, the finished ones first."""
    if not own.are_entries_current or not 0.0 <= own.stall_s < inf or (own.seq or 0) < 0:
        return None
    newest = -1
    front = done = None
    for entry in own.entries:
        if entry.seq <= newest or (entry.is_retired and front is not None):
            return None
        newest = entry.seq
        if entry.is_retired:
            done = entry
        elif front is None:
            front = entry
    entered = max(newest, own.seq or 0)
    if entered > standing.MAX_SEQ or (done is not None and not bounds.proves_arrival(done.op)):
        return None
    if front is not None and (entered != newest or front.is_started is False):
        return None
    completed = done.seq if done is not None else -1
    if own.finished is not None:  # NCCL's own count may be ahead of the entries
        before = front.seq - 1 if front is not None else entered
        if not own.finished == max(completed, 0) == before:
            return None
    return entered, completed, front
