"""What each rank called on a group, oldest first: the record of one rank, whole again.

The newest entries travel whole and older finished ones as a tail, see `hangwatch_agent.wire.Tail`.
"""

from __future__ import annotations

import msgspec

from hangwatch_agent.wire import Entry, GroupBeat, Tail
from hangwatch_server.diagnose.place import Report
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
    reports = survey.standings.reports(gid)
    if gid not in survey.recorded:
        survey.recorded[gid] = _by_seq(reports)
    found = dict(survey.recorded[gid].get(seq, {}))
    for rank, group, *_ in reports:
        if group.tail is not None and rank not in found:
            entry = _in_tail(group.tail, seq)
            if entry is not None:
                found[rank] = entry
    return found


def _by_seq(reports: list[Report]) -> dict[int, dict[int, Entry]]:
    """What is written out whole, by number and rank: a group may be asked about many numbers."""
    found: dict[int, dict[int, Entry]] = {}
    for rank, group, *_ in reports:
        for entry in group.entries:
            found.setdefault(entry.seq, {})[rank] = entry
    return found


def _in_tail(tail: Tail, seq: int) -> Entry | None:
    for place, kind in reversed(tail.calls):
        if place == seq and kind < len(tail.kinds):
            return msgspec.structs.replace(tail.kinds[kind], seq=seq, record_id=-1)
    return None
