"""Where each rank stands on each group: what it has entered, finished, and still waits in.

Reads one rank's own report only; what peers prove about it is in `bounds`. Raw counters are never
compared across ranks: on gloo they also count sends, and a completed number is racy, so completion
there means `is_retired` alone. Entries are ordered by `seq` alone: a recorder's ring may be written
out from its middle, and `record_id` counts from wherever that process began.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf
from typing import NamedTuple

from hangwatch_agent.wire import Entry, GroupBeat, RankBeat
from hangwatch_server import places
from hangwatch_server.model import Link, Place, RankView
from hangwatch_server.places import MAX_SEQ, Places

PROBE_SILENT_S = 5.0  # of a probe that writes each second; its counters are old by then


class Standing(NamedTuple):
    """One rank on one group; `is_exact`: it has entered nothing after `entered` (None: unknown)."""

    entered: int | None
    is_exact: bool
    completed: int  # newest collective known to be finished here, -1 for none
    fronts: tuple[Entry, ...]  # entered and not finished, oldest first
    stall_s: float
    entries_age_s: float
    group: GroupBeat
    entries: tuple[Entry, ...] = ()  # oldest first
    is_sane: bool = True  # False: its own numbers contradict each other, so it proves nothing


class Standings(Mapping[str, dict[int, Standing]]):
    """gid -> rank -> standing, worked out for a group when somebody asks for it."""

    def __init__(self, views: Mapping[int, RankView]) -> None:
        self._views = views
        self._places: dict[str, list[Place]] = {}
        self._known: dict[str, dict[int, Standing]] = {}
        self.with_fronts: set[str] = set()  # groups in which somebody may have a front
        self.undumped: set[int] = set()  # ranks with entries older than their counters
        for view in views.values():
            self._add(view)

    def _add(self, view: RankView) -> None:
        """What this rank says of its groups; nothing of a rank that never reported."""
        by_gid = self._places
        for place in places_of(view):
            gid = place.gid
            known = by_gid.get(gid)
            if known is None:
                by_gid[gid] = [place]
            else:
                known.append(place)
            if place.may_wait:
                self.with_fronts.add(gid)
            if place.entered is None and _is_undumped(place.group):
                self.undumped.add(view.rank)

    def __getitem__(self, gid: str) -> dict[int, Standing]:
        known = self._known.get(gid)
        if known is None:
            known = dict(self._read(self._places[gid]))
            self._known[gid] = known
        return known

    def each(self, gid: str) -> Iterator[tuple[int, Standing]]:
        """As items of the group's standings, for who may stop at the first."""
        known = self._known.get(gid)
        yield from self._read(self.places(gid)) if known is None else known.items()

    def places(self, gid: str) -> list[Place]:
        """Of all that tell of this group, in the order of the snapshot's ranks."""
        return self._places.get(gid, [])

    def _read(self, found: list[Place]) -> Iterator[tuple[int, Standing]]:
        for place in found:
            view = self._views[place.rank]
            yield place.rank, _of_report(place.group, view.age_s, is_prompt(view))

    def __contains__(self, gid: object) -> bool:
        return gid in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def places_of(view: RankView) -> Places:
    """As the board has worked them out, or worked out now where no board did."""
    if view.places is not None:
        return view.places
    return places.of(view.rank, view.beat) if view.beat is not None else ()


def is_prompt(view: RankView) -> bool:
    """Whether what the rank says is of this moment, by its agent and by its probe."""
    beat = view.beat
    is_written = beat is not None and (beat.beat_age_s or 0.0) <= PROBE_SILENT_S
    return is_written and view.link is Link.LIVE


def _is_undumped(group: GroupBeat) -> bool:
    return group.finished is None and not group.are_entries_current


def quiet_s(view: RankView) -> float:
    """How long no counter of this rank has moved; infinite for a rank without groups."""
    beat = view.beat
    if beat is None or not beat.groups:
        return float("inf")
    return min([group.stall_s for group in beat.groups]) + view.age_s


def has_probe(beat: RankBeat | None) -> bool:
    return beat is not None and beat.depth.value == "probe"


def _of_report(group: GroupBeat, age_s: float, is_live: bool) -> Standing:
    """One pass over a gloo group's current entries; everything else takes the longer way."""
    stall_s = group.stall_s
    if group.finished is not None or not group.are_entries_current or not 0.0 <= stall_s < inf:
        return _of_group(group, age_s, is_live)
    newest = completed = -1
    fronts: list[Entry] = []
    for entry in group.entries:
        seq = entry.seq
        if seq < newest or seq > MAX_SEQ:
            return _of_group(group, age_s, is_live)
        newest = seq
        if entry.is_retired:
            completed = seq
        else:
            fronts.append(entry)
    entered = max(newest, group.seq or 0)
    if newest < 0 or entered > MAX_SEQ:
        return _of_group(group, age_s, is_live)
    dumped_s = (group.entries_age_s or 0.0) + age_s
    return Standing(
        entered,
        is_live,
        completed,
        tuple(fronts),
        stall_s + age_s,
        dumped_s,
        group,
        group.entries,
    )


def _of_group(group: GroupBeat, age_s: float, is_live: bool) -> Standing:
    entries = group.entries
    seqs = [entry.seq for entry in entries]
    ordered = sorted(seqs)
    if ordered != seqs:
        entries = tuple(sorted(entries, key=lambda entry: entry.seq))
    newest = ordered[-1] if seqs else -1
    completed = _completed(group, entries)
    entered, is_exact = _entered(group, newest)
    is_sane = _is_sane(group, ordered, entered)
    if completed > (-1 if entered is None else entered):
        entered = completed
    fronts = _fronts(group, entries, entered) if is_sane else ()
    dumped_s = group.entries_age_s if group.entries_age_s is not None else 0.0
    return Standing(
        entered if is_sane else None,
        is_exact and is_live and is_sane,
        completed if is_sane else -1,
        fronts,
        (group.stall_s if is_sane else 0.0) + age_s,
        dumped_s + age_s,
        group,
        entries,
        is_sane,
    )


def _is_sane(group: GroupBeat, seqs: list[int], entered: int | None) -> bool:
    """Whether its numbers can be true together: nobody has finished what it has not begun."""
    if not 0.0 <= group.stall_s < inf or (seqs and (seqs[0] < 0 or seqs[-1] > MAX_SEQ)):
        return False
    if group.finished is None and group.seq is None:
        return True
    finished = -1 if group.finished is None else group.finished
    seq = -1 if group.seq is None else group.seq
    is_possible = -1 <= seq <= MAX_SEQ and -1 <= finished <= MAX_SEQ
    return is_possible and (entered is None or finished <= max(entered, 0))


def _entered(group: GroupBeat, newest: int) -> tuple[int | None, bool]:
    if group.are_entries_current:
        # An entry that is still pending stays in the ring, so an empty dump means nothing pending.
        return max(newest, group.seq or 0), True
    if group.seq is not None:
        return max(newest, group.seq), True
    if group.counter == 0:
        return 0, True
    return (newest, False) if newest >= 0 else (None, False)


def _completed(group: GroupBeat, entries: tuple[Entry, ...]) -> int:
    finished = group.finished if group.finished is not None else -1
    for entry in reversed(entries):
        if entry.is_retired:
            return max(finished, entry.seq)
    return finished


def _fronts(group: GroupBeat, entries: tuple[Entry, ...], entered: int | None) -> tuple[Entry, ...]:
    waiting: list[Entry] = []
    if group.are_entries_current:
        waiting = [entry for entry in entries if not entry.is_retired]
    if group.finished is None:
        return tuple(waiting)
    waiting = [entry for entry in waiting if entry.seq > group.finished]
    front = group.finished + 1
    is_known = bool(waiting) and waiting[0].seq == front
    if is_known or entered is None or entered < front:
        return tuple(waiting)
    return (_unseen_front(group, front), *waiting)


def _unseen_front(group: GroupBeat, seq: int) -> Entry:
    """NCCL's next collective by its counters, where the ring has wrapped over it or is old."""
    known = next((entry for entry in group.entries if entry.seq == seq), None)
    has_started = None if group.started is None else group.started >= seq
    op = known.op if known is not None else ""
    return Entry(seq=seq, op=op, is_retired=False, is_started=has_started)
