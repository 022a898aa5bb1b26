"""Recorder entries that a connection has carried already, and that need not travel again.

A rank that stands still has the same entries second after second, and they are most of its beat.
The server fills them in from the rank's beat before (board.slots): each side forgets what the
newest beat does not hold, so that both always know the same. Sends nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from hangwatch_agent import wire

_Key = tuple[str, int, int, int, str]  # launch, rank, pid and start of the process, gid


class Carried:
    """What the newest heartbeat of one connection held."""

    def __init__(self) -> None:
        self._groups: dict[_Key, wire.GroupBeat] = {}

    def clear(self) -> None:
        """A new connection has carried nothing."""
        self._groups.clear()

    def less(self, beats: Iterable[wire.RankBeat]) -> tuple[wire.RankBeat, ...]:
        """The beats without the entries that are the same as before."""
        return tuple(self._less(beat) for beat in beats)

    def note(self, beats: Iterable[wire.RankBeat]) -> None:
        """These beats are what is sent."""
        held: dict[_Key, wire.GroupBeat] = {}
        for beat in beats:
            for group in beat.groups:
                key = _key(beat, group)
                if group.are_entries_kept:
                    held[key] = self._groups[key]
                elif group.entries:
                    held[key] = group
        self._groups = held

    def _less(self, beat: wire.RankBeat) -> wire.RankBeat:
        if not any(group.entries for group in beat.groups):
            return beat
        groups = tuple(self._of_group(beat, group) for group in beat.groups)
        return msgspec.structs.replace(beat, groups=groups)

    def _of_group(self, beat: wire.RankBeat, group: wire.GroupBeat) -> wire.GroupBeat:
        before = self._groups.get(_key(beat, group)) if group.entries else None
        if before is None or (before.entries, before.tail) != (group.entries, group.tail):
            return group
        return msgspec.structs.replace(group, entries=(), tail=None, are_entries_kept=True)


def _key(beat: wire.RankBeat, group: wire.GroupBeat) -> _Key:
    return beat.launch, beat.rank, beat.pid, beat.start_ticks, group.gid
