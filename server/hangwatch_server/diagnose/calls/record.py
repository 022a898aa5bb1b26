"""What each rank called on a group, oldest first: the record of one rank, whole again.

The newest entries travel whole and older finished ones as a tail, see `hangwatch_agent.wire.Tail`.
"""

from __future__ import annotations

import msgspec

from hangwatch_agent.wire import Entry, GroupBeat
from hangwatch_server.diagnose.survey import Survey

LONGEST = 64  # newest calls that are compared


def of(survey: Survey, rank: int, gid: str) -> tuple[Entry, ...]:
    group = survey.words(rank, gid)
    return whole(group) if group is not None else ()


def whole(group: GroupBeat) -> tuple[Entry, ...]:
    """Tail and entries of one beat, at most `LONGEST`."""
    tail = group.tail
    if tail is None or not tail.calls:
        return group.entries[-LONGEST:]
    first = group.entries[0].seq if group.entries else None
    older = [
        msgspec.structs.replace(tail.kinds[kind], seq=seq, record_id=-1)
        for seq, kind in tail.calls
        if kind < len(tail.kinds) and (first is None or seq < first)
    ]
    return (*older, *group.entries)[-LONGEST:]


def at(survey: Survey, gid: str, seq: int) -> dict[int, Entry]:
    """Every member's recorded call at this place, finished or not."""
    found: dict[int, Entry] = {}
    for rank, _, _, group, _ in survey.standings.reports(gid):
        entry = _at(group, seq)
        if entry is not None:
            found[rank] = entry
    return found


def _at(group: GroupBeat, seq: int) -> Entry | None:
    for entry in reversed(group.entries):
        if entry.seq == seq:
            return entry
    if group.tail is not None:
        for place, kind in reversed(group.tail.calls):
            if place == seq and kind < len(group.tail.kinds):
                return msgspec.structs.replace(group.tail.kinds[kind], seq=seq, record_id=-1)
    return None
