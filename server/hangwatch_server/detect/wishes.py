"""Which captures to take now: paced so that a frozen culprit is proven by the time it is confirmed.

First the culprits, at a share of the suspect limit, or at once for a cycle; at suspicion one rank
of each class that waits, and recorder entries where they are missing. Never more than ten ranks at
a time.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from hangwatch_agent import wire
from hangwatch_server import process_states, ranges
from hangwatch_server.detect import progress
from hangwatch_server.detect.decision import Wish
from hangwatch_server.detect.memory import Stall
from hangwatch_server.detect.settings import DetectSettings
from hangwatch_server.model import Finding, Kind, Limits, Link, Snapshot

_STACKS = (wire.CaptureKind.STACKS,)
_RECORDER = (wire.CaptureKind.RECORDER,)
# A tick late is better than a tick early: three captures must span the whole window.
_TICK_SLACK_S = 0.2


def candidates(snapshot: Snapshot, finding: Finding, s: DetectSettings) -> tuple[int, ...]:
    """The ranks whose motion decides: the culprits, else one of each class of waiting ranks.

    Where nobody waits either, some of those in training.
    """
    in_cycle = (step.rank for step in finding.cycle)  # their stacks prove or disprove a deadlock
    culprits = tuple(dict.fromkeys((*in_cycle, *(c.rank for c in finding.culprits))))
    chosen = culprits or waiting_classes(finding)
    if not chosen and finding.kind is Kind.NO_PROGRESS:
        training = (rank for rank, view in snapshot.ranks.items() if progress.is_alive(view))
        chosen = tuple(itertools.islice(training, s.wish_ranks))
    return chosen[: s.wish_ranks]


def waiting_classes(finding: Finding) -> tuple[int, ...]:
    """The first rank of each "who waits for whom" row, else the first that waits at all."""
    rows = [edge.ranks for edge in finding.edges] or [finding.waiting]
    firsts = (ranges.parse(row)[:1] for row in rows)
    return tuple(dict.fromkeys(rank for first in firsts for rank in first))


def due(
    stall: Stall, snapshot: Snapshot, finding: Finding, limits: Limits, s: DetectSettings
) -> tuple[Stall, tuple[Wish, ...]]:
    """The wishes of this moment, and the stall that remembers them."""
    now_s, age_s = snapshot.taken_s, snapshot.taken_s - stall.origin_s
    if age_s < _first_s(finding, limits, s) and not stall.is_hung:
        return stall, ()
    wishes: list[Wish] = []
    suspects = _reachable(snapshot, candidates(snapshot, finding, s))
    if suspects and (_is_due(stall, now_s, s) or not set(suspects) <= set(stall.wished_for)):
        wishes.append(Wish(ranks=suspects, kinds=_STACKS))
        stall = replace(stall, wished_s=(*stall.wished_s, now_s), wished_for=suspects)
    is_suspected = age_s >= limits.suspect_after_s and finding.kind is not Kind.NO_PROGRESS
    if is_suspected or stall.is_hung:
        stall, more = _at_suspicion(stall, snapshot, finding, suspects, s)
        wishes.extend(more)
    return stall, tuple(wishes)


def _first_s(finding: Finding, limits: Limits, s: DetectSettings) -> float:
    """The age of a stall at its first capture; a cycle is hard evidence only with its stacks.

    Where nobody waits, most stalls are ordinary steps: they are looked into only when they last.
    """
    first_s = s.first_capture_at * limits.suspect_after_s
    if finding.kind is Kind.NO_PROGRESS:
        return max(first_s, s.no_progress_after_s)
    return min(first_s, s.hard_apart_s) if finding.kind is Kind.DEADLOCK else first_s


def _is_due(stall: Stall, now_s: float, s: DetectSettings) -> bool:
    """Evenly over the window at first, then ever more rarely, until the hang is confirmed."""
    if not stall.wished_s:
        return True
    asked = len(stall.wished_s)
    if stall.is_hung and asked >= s.frozen_captures:
        return False
    step_s = s.frozen_window_s / (s.frozen_captures - 1) if s.frozen_captures > 1 else 0.0
    late = max(0, asked - s.frozen_captures)
    pause_s = min(step_s * 2.0**late, max(step_s, s.capture_again_most_s))
    return now_s - stall.wished_s[-1] >= pause_s - _TICK_SLACK_S


def _at_suspicion(
    stall: Stall, snapshot: Snapshot, finding: Finding, suspects: Sequence[int], s: DetectSettings
) -> tuple[Stall, list[Wish]]:
    wishes: list[Wish] = []
    others = _reachable(snapshot, waiting_classes(finding))
    waiting = tuple(rank for rank in others if rank not in suspects)[: s.wish_ranks]
    if waiting and (stall.waiting_wishes == 0 or (stall.is_hung and stall.waiting_wishes == 1)):
        wishes.append(Wish(ranks=waiting, kinds=_STACKS))
        stall = replace(stall, waiting_wishes=stall.waiting_wishes + 1)
    if not stall.has_asked_recorder:
        lacking = tuple(r for r in (*suspects, *waiting) if _lacks_entries(snapshot, r))
        if lacking:
            wishes.append(Wish(ranks=lacking[: s.wish_ranks], kinds=_RECORDER))
        stall = replace(stall, has_asked_recorder=True)
    return stall, wishes


def _reachable(snapshot: Snapshot, ranks: Sequence[int]) -> tuple[int, ...]:
    """Ranks with a process that an agent can look at now."""
    views = ((rank, snapshot.ranks.get(rank)) for rank in ranks)
    return tuple(
        rank
        for rank, view in views
        if view and view.beat and not process_states.has_ended(view.beat.process)
        and view.link is not Link.LOST
    )  # fmt: skip


def _lacks_entries(snapshot: Snapshot, rank: int) -> bool:
    view = snapshot.ranks.get(rank)
    beat = view.beat if view is not None else None
    return (
        beat is not None
        and beat.depth is wire.Depth.PROBE
        and bool(beat.groups)
        and not any(group.are_entries_current for group in beat.groups)
    )
