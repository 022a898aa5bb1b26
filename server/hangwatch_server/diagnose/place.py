"""A rank's place on a group, read off a report in which nothing is odd: the everyday case.

Read rank by rank, as reports lie in memory: group by group the same takes more than twice as long.
"""

from __future__ import annotations

from math import inf

from hangwatch_agent.wire import Entry, GroupBeat
from hangwatch_server.diagnose import bounds

MAX_SEQ = 2**53  # beyond it no counter of a real job has been; such a number proves nothing

# What it has entered and finished, the oldest entry that it has not, and for how long that stands.
Place = tuple[int, int, Entry | None, float]


def of(own: GroupBeat) -> Place | None:
    """None unless its entries are current and in order, the finished ones first."""
    stall_s, entered = own.stall_s, own.seq or 0
    if not own.are_entries_current or not 0.0 <= stall_s < inf or entered < 0:
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
    if newest > entered:
        entered = newest
    if entered > MAX_SEQ or (done is not None and not bounds.proves_arrival(done.op)):
        return None
    if front is not None and (entered != newest or front.is_started is False):
        return None
    completed = done.seq if done is not None else -1
    if own.finished is not None:  # NCCL's own count may be ahead of the entries
        before = front.seq - 1 if front is not None else entered
        if not own.finished == max(completed, 0) == before:
            return None
    return entered, completed, front, stall_s
