"""A rank's place on a group, read off a report in which nothing is odd: the everyday case.

Read rank by rank, as reports lie in memory: group by group the same takes more than twice as long.
"""

from __future__ import annotations

from math import inf

from hangwatch_agent.wire import Entry, GroupBeat
from hangwatch_server.diagnose import bounds

MAX_SEQ = 2**53  # beyond it no counter of a real job has been; such a number proves nothing

# The rank and its words, then its place by them: what it has entered (None: something is odd) and
# finished, the oldest entry that it has not, and for how long that stands. One flat tuple, since a
# large job has a hundred thousand of them.
Report = tuple[int, GroupBeat, int | None, int, Entry | None, float]


def report(rank: int, age_s: float, own: GroupBeat) -> Report:
    """With a place where the entries are current and in order, the finished ones first."""
    stall_s, entered = own.stall_s, own.seq or 0
    if not own.are_entries_current or not 0.0 <= stall_s < inf or entered < 0:
        return _without_place(rank, own)
    newest = -1
    front = done = None
    for entry in own.entries:
        seq = entry.seq
        if seq <= newest:
            return _without_place(rank, own)
        newest = seq
        if not entry.is_retired:
            if front is None:
                front = entry
        elif front is not None:
            return _without_place(rank, own)
        else:
            done = entry
    if newest > entered:
        entered = newest
    if entered > MAX_SEQ or (done is not None and not bounds.proves_arrival(done.op)):
        return _without_place(rank, own)
    if front is not None and (entered != newest or front.is_started is False):
        return _without_place(rank, own)
    completed = done.seq if done is not None else -1
    if own.finished is not None:  # NCCL's own count may be ahead of the entries
        before = front.seq - 1 if front is not None else entered
        if not own.finished == max(completed, 0) == before:
            return _without_place(rank, own)
    return rank, own, entered, completed, front, stall_s + age_s


def _without_place(rank: int, own: GroupBeat) -> Report:
    return rank, own, None, -1, None, 0.0
