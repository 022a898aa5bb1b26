"""Where each rank stands on each group: what it has entered, finished, and still waits in.

Reads one rank's own report only; what peers prove about it is in `bounds`. Raw counters are never
compared across ranks: on gloo they also count sends, and a completed number is racy, so completion
there means `is_retired` alone.
"""

from __future__ import annotations

from typing import NamedTuple

from hangwatch_agent.wire import Entry, GroupBeat, RankBeat
from hangwatch_server.model import Link, RankView

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


def of_rank(view: RankView) -> list[tuple[str, Standing]]:
    """Standing per gid; empty for a rank that never reported."""
    beat = view.beat
    if beat is None or beat.is_destroyed:
        return []
    is_heard = (beat.beat_age_s or 0.0) <= PROBE_SILENT_S
    is_live = view.link is Link.LIVE and is_heard
    return [(group.gid, _of_group(group, view.age_s, is_live)) for group in beat.groups]


def quiet_s(view: RankView) -> float:
    """How long no counter of this rank has moved; infinite for a rank without groups."""
    beat = view.beat
    if beat is None or not beat.groups:
        return float("inf")
    return min(group.stall_s for group in beat.groups) + view.age_s


def has_probe(beat: RankBeat | None) -> bool:
    return beat is not None and beat.depth.value == "probe"


def _of_group(group: GroupBeat, age_s: float, is_live: bool) -> Standing:
    entries = group.entries
    newest = entries[-1].seq if entries else -1
    completed = _completed(group)
    entered, is_exact = _entered(group, newest)
    if completed > (-1 if entered is None else entered):
        entered = completed
    fronts = _fronts(group, entered)
    dumped_s = group.entries_age_s if group.entries_age_s is not None else 0.0
    return Standing(
        entered,
        is_exact and is_live,
        completed,
        fronts,
        group.stall_s + age_s,
        dumped_s + age_s,
        group,
    )


def _entered(group: GroupBeat, newest: int) -> tuple[int | None, bool]:
    if group.are_entries_current:
        # An entry that is still pending stays in the ring, so an empty dump means nothing pending.
        return max(newest, group.seq or 0), True
    if group.seq is not None:
        return max(newest, group.seq), True
    if group.counter == 0:
        return 0, True
    return (newest, False) if newest >= 0 else (None, False)


def _completed(group: GroupBeat) -> int:
    finished = group.finished if group.finished is not None else -1
    for entry in reversed(group.entries):
        if entry.is_retired:
            return max(finished, entry.seq)
    return finished


def _fronts(group: GroupBeat, entered: int | None) -> tuple[Entry, ...]:
    waiting: list[Entry] = []
    if group.are_entries_current:
        waiting = [entry for entry in group.entries if not entry.is_retired]
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
