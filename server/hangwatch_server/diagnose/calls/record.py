"""What each rank called on a group, oldest first: the record of one rank, whole again.

The newest entries travel whole and older finished ones as a tail, see `hangwatch_agent.wire.Tail`.
"""

from __future__ import annotations

import msgspec

from hangwatch_agent.wire import Entry, GroupBeat, Tail
from hangwatch_server.diagnose.survey import Survey
from hangwatch_server.model import Place

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
    places = survey.standings.places(gid)
    if gid not in survey.recorded:
        survey.recorded[gid] = _by_seq(places)
    found = dict(survey.recorded[gid].get(seq, {}))
    for place in places:
        tail = place.group.tail
        if tail is not None and place.rank not in found:
            entry = _in_tail(tail, seq)
            if entry is not None:
                found[place.rank] = entry
    return found


def _by_seq(places: list[Place]) -> dict[int, dict[int, Entry]]:
    """What is written out whole, by number and rank: a group may be asked about many numbers."""
    found: dict[int, dict[int, Entry]] = {}
    for place in places:
        for entry in place.group.entries:
            found.setdefault(entry.seq, {})[place.rank] = entry
    return found


def _in_tail(tail: Tail, seq: int) -> Entry | None:
    for number, kind in reversed(tail.calls):
        if number == seq and kind < len(tail.kinds):
            return msgspec.structs.replace(tail.kinds[kind], seq=seq, record_id=-1)
    return None
