"""The progress clock: since when nothing has moved, and which gaps between movements are usual.

The clock measures calls that move and fronts that wait, never heartbeats: a silent agent moves no
clock.
"""

from __future__ import annotations

import math
from dataclasses import replace

from hangwatch_server.detect import memory as memories
from hangwatch_server.detect.memory import Memory, Stall
from hangwatch_server.detect.settings import DetectSettings
from hangwatch_server.model import Finding, Kind, Link, RankView, Snapshot

# Ages come from probes that write once a second: a smaller shift of the origin is no progress.
_JITTER_S = 1.5
TRAINING = "training"


def quiet_s(view: RankView) -> float | None:
    """For how long no counter of this rank has moved; None without counters."""
    if view.beat is None or not view.beat.groups:
        return None
    return min(group.stall_s for group in view.beat.groups) + view.age_s


def is_alive(view: RankView) -> bool:
    """A rank whose process runs and has not left training."""
    beat = view.beat
    return beat is not None and beat.process.state != "gone" and not beat.is_destroyed


def _tally(snapshot: Snapshot) -> int:
    beats = [view.beat for view in snapshot.ranks.values() if view.beat is not None]
    calls = sum(count.posted + count.done for beat in beats for count in beat.p2p)
    return calls + sum(beat.step or 0 for beat in beats)


def observe(memory: Memory, snapshot: Snapshot, finding: Finding, s: DetectSettings) -> Memory:
    """The memory with its clock set: an origin that moved on ends a stall and teaches it."""
    now_s = snapshot.taken_s
    tally = _tally(snapshot)
    tally_s = now_s if tally != memory.tally and memory.seen_s else memory.tally_s
    memory = replace(memory, tally=tally, tally_s=tally_s)
    age_s = _age_s(memory, snapshot, finding)
    if age_s is None:
        return replace(memory, seen_s=now_s)
    origin_s = now_s - age_s
    old = memory.stall
    if old is None:
        return replace(memory, stall=Stall(origin_s=origin_s), seen_s=now_s)
    if origin_s <= old.origin_s + _JITTER_S and age_s >= min(1.0, now_s - old.origin_s):
        return replace(memory, seen_s=now_s)
    learned = _learn(memory, old, s)
    return replace(learned, stall=Stall(origin_s=origin_s), seen_s=now_s, has_progressed=True)


def stalled_s(memory: Memory, now_s: float) -> float:
    return max(0.0, now_s - memory.stall.origin_s) if memory.stall else 0.0


def _age_s(memory: Memory, snapshot: Snapshot, finding: Finding) -> float | None:
    """Age of the oldest stuck front; where nobody waits, of the newest movement of any rank."""
    if finding.kind not in (Kind.NONE, Kind.NO_PROGRESS):
        return finding.stalled_s
    heard = (view for view in snapshot.ranks.values() if is_alive(view) and view.link is Link.LIVE)
    ages = [age for age in map(quiet_s, heard) if age is not None]
    if memory.tally_s is not None:
        ages.append(snapshot.taken_s - memory.tally_s)
    return min(ages, default=None)


def _learn(memory: Memory, stall: memories.Stall, s: DetectSettings) -> Memory:
    """A gap enters the model only because it ended in progress."""
    gap_s = memory.seen_s - stall.origin_s
    phase = stall.phase or TRAINING
    gaps = (*memory.gaps.get(phase, ()), max(0.0, gap_s))[-s.learn_window :]
    return replace(
        memory,
        gaps={**memory.gaps, phase: gaps},
        p99={**memory.p99, phase: _percentile99(gaps)},
    )


def _percentile99(gaps: tuple[float, ...]) -> float:
    return sorted(gaps)[math.ceil(0.99 * len(gaps)) - 1]
