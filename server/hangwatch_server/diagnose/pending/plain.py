"""The everyday group of a stuck job, in one pass: some members wait in a call that others have not
come to, all of them are heard, alive and well, and nothing contradicts anything.

Tens of thousands of groups of a large job look like that, and a standing for each member with all
that peers may prove of it takes longer than a diagnosis may. Says exactly what `collectives` says
with all its care, and nothing (None) of any group that is not as plain as that.
"""

from __future__ import annotations

from math import inf

from hangwatch_agent.wire import Entry
from hangwatch_server.diagnose.pending import proofs
from hangwatch_server.diagnose.pending.ops import Form, PendingOp, first_name
from hangwatch_server.diagnose.survey import Survey
from hangwatch_server.model import Content, GroupView, Place
from hangwatch_server.places import MAX_SEQ


def pending(survey: Survey, group: GroupView, places: list[Place]) -> PendingOp | None:
    """The one operation that this group waits in; None where more care is needed."""
    if len(places) != len(group.ranks) or not survey.prompt.issuperset(group.ranks):
        return None
    views = survey.snapshot.ranks
    have: dict[int, Entry | None] = {}
    absent: list[int] = []
    content: Content | None = None
    are_alike = are_queued = True
    waits_in = completed = newest = most = -1
    least, stalled_s = MAX_SEQ, inf
    for place in places:
        rank, entered = place.rank, place.entered
        if entered is None:
            return None
        if place.front is None:
            absent.append(rank)
            least, most = min(least, entered), max(most, entered)
        elif not have:
            waits_in, newest, content = place.waits_in, entered, place.content
            have[rank] = place.front
            are_queued = place.queued_as >= 0
        elif place.waits_in != waits_in or entered != newest:
            return None  # of those in later calls too, some may have stopped in between
        else:
            have[rank] = place.front
            are_alike = are_alike and place.content == content
            are_queued = are_queued and place.queued_as >= 0
        if place.completed > completed:
            completed = place.completed
        still_s = place.stall_s + views[rank].age_s
        if still_s < stalled_s:
            stalled_s = still_s
    if not have or stalled_s < survey.settings.stable_after_s:
        return None
    # Nobody may claim to be past a call that others claim not to have come to.
    if completed >= waits_in or most >= waits_in:
        return None
    if absent and least < max(completed, waits_in - proofs.FAR_AHEAD):
        return None
    if tuple([place.rank for place in places]) != group.ranks:
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
        queued=tuple([one.queued_as for one in places if one.front]) if are_queued else (),
        is_agreed=are_alike,
    )
