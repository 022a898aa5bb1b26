"""Where one rank stands on each of its groups, by one heartbeat alone.

Worked out when the heartbeat arrives, while it still lies in the processor's cache: a job that
stands still is looked at twice a second, and to go through the entries of ten thousands of ranks
anew would take longer than all the rest of its diagnosis. What has not changed since the heartbeat
before is taken over from there. What ranks prove about each other is the diagnosis's matter.
"""

from __future__ import annotations

from functools import lru_cache
from math import inf
from sys import intern

from hangwatch_agent.wire import Entry, GroupBeat, RankBeat
from hangwatch_server import op_names
from hangwatch_server.model import Content, Place

MAX_SEQ = 2**53  # beyond it no counter of a real job has been; such a number proves nothing

Places = tuple[Place, ...]


def of(rank: int, beat: RankBeat, before: Places = ()) -> Places:
    """One place for each group that the rank tells of, none once it has left its groups.

    `before` are those of the same process's heartbeat before.
    """
    if beat.is_destroyed:
        return ()
    groups = beat.groups
    if len(before) != len(groups):
        return tuple([_read(rank, group) for group in groups])
    pairs = zip(groups, before, strict=True)
    return tuple([_taken_over(old, group) or _read(rank, group) for group, old in pairs])


def _taken_over(old: Place, group: GroupBeat) -> Place | None:
    """The same place with its age of now; None where the group says anything else than before."""
    own = old.group
    if group.entries is not own.entries or group.gid != own.gid or old.entered is None:
        return None
    if group.seq != own.seq or group.finished != own.finished or not group.are_entries_current:
        return None
    stall_s = group.stall_s
    if not 0.0 <= stall_s < inf:
        return None
    return Place(
        old.rank,
        old.gid,
        old.entered,
        old.completed,
        old.front,
        old.waits_in,
        old.queued_as,
        stall_s,
        old.content,
        group,
        old.may_wait,
    )


def _read(rank: int, group: GroupBeat) -> Place:
    """What the entries say where they are current and in order, the finished ones first."""
    stall_s, entered = group.stall_s, group.seq or 0
    if not group.are_entries_current or not 0.0 <= stall_s < inf or entered < 0:
        return _odd(rank, group)
    ends = _ends(group.entries)
    if ends is None:
        return _odd(rank, group)
    done, front, newest = ends
    entered = max(entered, newest)
    if entered > MAX_SEQ or (done is not None and not op_names.proves_arrival(done.op)):
        return _odd(rank, group)
    completed = done.seq if done is not None else -1
    if group.finished is not None and not _is_counted_alike(group, entered, completed, front):
        return _odd(rank, group)
    gid = intern(group.gid)
    if front is None:
        return Place(rank, gid, entered, completed, None, -1, -1, stall_s, None, group, False)
    if entered != newest or front.is_started is False:
        return _odd(rank, group)
    content = _content(front.op, front.input_sizes, front.input_dtypes)
    is_queued = group.finished is not None and front.is_started is None
    queued_as = front.record_id if is_queued else -1
    waits_in = front.seq
    return Place(
        rank, gid, entered, completed, front, waits_in, queued_as, stall_s, content, group, True
    )


def _ends(entries: tuple[Entry, ...]) -> tuple[Entry | None, Entry | None, int] | None:
    """The newest finished entry, the oldest other one and the newest number; None out of order."""
    newest = -1
    front = done = None
    for entry in entries:
        if entry.seq <= newest:
            return None
        newest = entry.seq
        if not entry.is_retired:
            if front is None:
                front = entry
        elif front is not None:
            return None
        else:
            done = entry
    return done, front, newest


def _is_counted_alike(group: GroupBeat, entered: int, completed: int, front: Entry | None) -> bool:
    """Whether NCCL's own count, which may be ahead of the entries, says the same as they do."""
    before = front.seq - 1 if front is not None else entered
    return group.finished == max(completed, 0) == before


@lru_cache(maxsize=256)  # a job makes the same few calls over and over
def _content(op: str, sizes: tuple[tuple[int, ...], ...], dtypes: tuple[str, ...]) -> Content:
    return op, sizes, dtypes


def _odd(rank: int, group: GroupBeat) -> Place:
    may_wait = _may_wait(group)
    return Place(rank, intern(group.gid), None, -1, None, -1, -1, 0.0, None, group, may_wait)


def _may_wait(group: GroupBeat) -> bool:
    """Whether this rank may have entered a call of the group and not finished it.

    NCCL's counters tell, whatever the entries say.
    """
    finished, entries = group.finished, group.entries
    if finished is not None:
        return (group.seq or 0) > finished or any(entry.seq > finished for entry in entries)
    return group.are_entries_current and not all(entry.is_retired for entry in entries)
