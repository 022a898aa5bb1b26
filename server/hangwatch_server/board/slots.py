"""One rank's place in a job, and the rule by which a newer process takes it from an older one."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from hangwatch_agent import wire
from hangwatch_server import places, process_states
from hangwatch_server.places import Places

# An agent that just restarted may need a moment to find its ranks again.
UNLISTED_GRACE_S = 5.0


@dataclass(slots=True)
class Slot:
    """The newest process known as one rank."""

    node: str
    beat: wire.RankBeat
    heard_s: float
    number: int  # the attempt this process belongs to
    restart: int  # the launcher's count at this process's start, as far as known
    alive_s: float  # when this process was last heard of and not gone; its first sight if never
    absent_since_s: float | None = None  # its node's heartbeats stopped listing it
    is_unlisted: bool = False  # for longer than a grace time
    calls: int = 0
    overlay: dict[str, tuple[int, tuple[wire.Entry, ...]]] = field(default_factory=dict)
    told: dict[str, wire.GroupBeat] = field(default_factory=dict)  # with entries, by its own beat
    places: Places | None = None  # by `beat`, which only `_set` changes

    def __post_init__(self) -> None:
        self._set(self._whole(self.beat))

    @property
    def process(self) -> tuple[str, int, int]:
        return self.node, self.beat.pid, self.beat.start_ticks

    def is_of(self, node: str, beat: wire.RankBeat) -> bool:
        """Whether this is the process that a beat of `node` speaks of."""
        own = self.beat
        same = own.pid == beat.pid and own.start_ticks == beat.start_ticks
        return same and self.node == node

    @property
    def is_gone(self) -> bool:
        return process_states.has_ended(self.beat.process)

    def refresh(self, beat: wire.RankBeat, now_s: float) -> None:
        """Take the same process's newer beat."""
        self._set(self._with_overlay(self._whole(beat)))
        self.heard_s = now_s
        if not self.is_gone:
            self.alive_s = now_s
        self.absent_since_s, self.is_unlisted = None, False

    def miss(self, now_s: float) -> None:
        """Its node sent a heartbeat without it: after a grace time nothing is known of it.

        That is no end: an agent says of a process that ended that it is gone, for ten minutes. One
        that says nothing may follow another run dir now, or have refused the rank's record.
        """
        if self.is_gone:
            return
        if self.absent_since_s is None:
            self.absent_since_s = now_s
        self.is_unlisted = now_s - self.absent_since_s >= UNLISTED_GRACE_S

    def lay(self, part: wire.CapturePart, now_s: float) -> None:
        """Use a capture's entries for the groups whose counter has not moved since it was taken."""
        taken_s = now_s - part.age_s
        beats = {group.gid: group for group in self.beat.groups}
        for entries in part.entries:
            group = beats.get(entries.gid)
            if group is not None and taken_s >= self.heard_s - group.stall_s:
                newest = entries.entries[-wire.MAX_ENTRIES :]
                self.overlay[entries.gid] = (group.counter, newest)
        self._set(self._with_overlay(self.beat))

    def _set(self, beat: wire.RankBeat) -> None:
        """Take the beat as it is now whole, with the places that follow from it alone.

        None while no group stands still: nobody asks for places of a job whose calls all go on.
        """
        stands = any([group.are_entries_current for group in beat.groups])
        self.places = places.of(beat.rank, beat, self.places or ()) if stands else None
        self.beat = beat

    def _whole(self, beat: wire.RankBeat) -> wire.RankBeat:
        """The beat with the entries that it leaves out because the one before had them."""
        for group in beat.groups:
            if group.are_entries_kept:
                groups = tuple([self._refilled(group) for group in beat.groups])
                beat = msgspec.structs.replace(beat, groups=groups)
                break
        self.told = {group.gid: group for group in beat.groups if group.entries}
        return beat

    def _refilled(self, group: wire.GroupBeat) -> wire.GroupBeat:
        if not group.are_entries_kept:
            return group
        before = self.told.get(group.gid)
        if before is None:  # an empty list would say that nothing is pending
            return msgspec.structs.replace(group, are_entries_kept=False, are_entries_current=False)
        return msgspec.structs.replace(
            group, are_entries_kept=False, entries=before.entries, tail=before.tail
        )

    def _with_overlay(self, beat: wire.RankBeat) -> wire.RankBeat:
        if not self.overlay:
            return beat
        groups = tuple(self._laid(group) for group in beat.groups)
        return msgspec.structs.replace(beat, groups=groups) if self.overlay else beat

    def _laid(self, group: wire.GroupBeat) -> wire.GroupBeat:
        found = self.overlay.get(group.gid)
        if found is None:
            return group
        counter, entries = found
        if counter != group.counter or (group.are_entries_current and group.entries):
            del self.overlay[group.gid]
            return group
        seqs = [entry.seq for entry in entries]
        return msgspec.structs.replace(
            group,
            entries=entries,
            entries_age_s=0.0,
            are_entries_current=True,
            seq=max(seqs) if seqs else group.seq,
        )


def replaces(
    old: Slot, node: str, beat: wire.RankBeat, old_node_is_live: bool, restart: int
) -> bool:
    """Whether a process that is not `old`'s takes over its rank number.

    On one node the higher restart count wins, then the later start. Across nodes no clocks are
    compared, and a count is only what a process says of itself: the holder keeps its rank while its
    process lives and its agent speaks of it, so that no node can take a live rank from another.
    Whoever comes too early is asked again with its next beat; a higher count need not wait until it
    is sure that a process which is no longer listed stays so.
    """
    if node == old.node:
        return (restart, beat.start_ticks) > (old.restart, old.beat.start_ticks)
    is_over = old.is_gone or not old_node_is_live
    if restart > old.restart:
        return is_over or old.absent_since_s is not None
    is_free = is_over or old.is_unlisted
    return is_free and restart == old.restart and not process_states.has_ended(beat.process)


def calls_of(beat: wire.RankBeat) -> int:
    return sum([group.counter for group in beat.groups])


def moved_ago_s(beat: wire.RankBeat) -> float | None:
    """Seconds between this rank's last call on any group and the beat; None before the first."""
    return min([group.stall_s for group in beat.groups if group.counter > 0], default=None)
