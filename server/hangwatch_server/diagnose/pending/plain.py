"""The everyday group of a stuck job, in one pass: some members wait in a call that others have not
come to, all of them are heard, alive and well, and nothing contradicts anything.

Tens of thousands of groups of a large job look like that, and a standing for each member with all
that peers may prove of it takes longer than a diagnosis may. Says exactly what `collectives` says
with all its care, and nothing (None) of any group that is not as plain as that.
"""

from __future__ import annotations

from math import inf
from operator import itemgetter

from hangwatch_agent.wire import Entry
from hangwatch_server.diagnose.pending import proofs
from hangwatch_server.diagnose.pending.ops import Form, PendingOp, first_name
from hangwatch_server.diagnose.place import MAX_SEQ, Report
from hangwatch_server.diagnose.survey import Survey
from hangwatch_server.model import GroupView

_RANK = itemgetter(0)


def pending(survey: Survey, group: GroupView, reports: list[Report]) -> PendingOp | None:
    """The one operation that this group waits in; None where more care is needed."""
    if not survey.prompt.issuperset(group.ranks):
        return None
    have: dict[int, Entry | None] = {}
    absent: list[int] = []
    waits_in = completed = newest = most = -1
    least, stalled_s = MAX_SEQ, inf
    for rank, _, entered, finished, front, still_s in reports:
        if entered is None:
            return None
        if front is None:
            absent.append(rank)
            least, most = min(least, entered), max(most, entered)
        elif have and (front.seq != waits_in or entered != newest):
            return None  # of those in later calls too, some may have stopped in between
        else:
            have[rank] = front
            waits_in, newest = front.seq, entered
        if finished > completed:
            completed = finished
        if still_s < stalled_s:
            stalled_s = still_s
    if not have or stalled_s < survey.settings.stable_after_s:
        return None
    # Nobody may claim to be past a call that others claim not to have come to.
    if completed >= waits_in or most >= waits_in:
        return None
    if absent and least < max(completed, waits_in - proofs.FAR_AHEAD):
        return None
    if tuple(map(_RANK, reports)) != group.ranks:
        return None
    if not survey.standings.undumped.isdisjoint(absent):
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
