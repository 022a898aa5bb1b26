"""The progress clock: since when nothing has moved. What its gaps teach is `learning`'s part.

The clock measures calls that move and fronts that wait, never heartbeats: a silent agent moves no
clock. A rank without counters moves whenever the kernel runs its main thread.
"""

from __future__ import annotations

from dataclasses import replace

from hangwatch_agent import wire
from hangwatch_server import process_states
from hangwatch_server.detect import arrivals, learning
from hangwatch_server.detect.memory import Memory, Stall
from hangwatch_server.detect.settings import DetectSettings
from hangwatch_server.model import Finding, Kind, Link, RankView, Snapshot

# Ages come from probes that write once a second: a smaller shift of the origin is no progress.
_JITTER_S = 1.5
# Looks are half a second apart: after a longer break this process stood still, not the ranks.
_BREAK_S = 5.0


def unmoved_s(view: RankView) -> float | None:
    """For how long no counter of this rank has moved; None without counters.

    Of a rank that shows its process only, for how long its main thread has not run.
    """
    if view.beat is None:
        return None
    if view.beat.groups:
        return min([group.stall_s for group in view.beat.groups]) + view.age_s
    still_s = kernel_still_s(view.beat.process)
    if still_s is None or view.beat.depth is not wire.Depth.BARE:
        return None
    return still_s + view.age_s


def kernel_still_s(process: wire.ProcessFacts) -> float | None:
    """For how long the kernel has not run the main thread; None where it does not say.

    It counts how often it starts the thread: one that runs, or is ready to, without a break is
    never started and yet stands anything but still.
    """
    if process.main_still_s is None:
        return None
    return 0.0 if process.state == "R" else process.main_still_s


def is_alive(view: RankView) -> bool:
    """A rank whose process runs and has not left training."""
    beat = view.beat
    return beat is not None and not process_states.has_ended(beat.process) and not beat.is_destroyed


def observe(memory: Memory, snapshot: Snapshot, finding: Finding, s: DetectSettings) -> Memory:
    """The memory with its clock set: an origin that moved on ends a stall and teaches it."""
    now_s = snapshot.taken_s
    memory = _looked(memory, snapshot, s)
    age_s = _age_s(memory, snapshot, finding)
    if age_s is None:
        return replace(memory, seen_s=now_s, is_deaf=True)
    origin_s = now_s - age_s
    old = memory.stall
    if old is None:
        return replace(memory, stall=Stall(origin_s=origin_s), seen_s=now_s, is_deaf=False)
    if origin_s <= old.origin_s + _JITTER_S and age_s >= min(1.0, now_s - old.origin_s):
        return replace(memory, seen_s=now_s, is_deaf=False)
    if not memory.is_deaf:
        memory = learning.learn(memory, old, memory.seen_s - old.origin_s, s)
        memory = arrivals.learn(memory, old, s)
    return replace(
        memory, stall=Stall(origin_s=origin_s), seen_s=now_s, is_deaf=False, has_progressed=True
    )


def stalled_s(memory: Memory, now_s: float) -> float:
    return max(0.0, now_s - memory.stall.origin_s) if memory.stall else 0.0


def _looked(memory: Memory, snapshot: Snapshot, s: DetectSettings) -> Memory:
    """What one pass over all ranks tells: how far they are, and whether we had looked away."""
    now_s = snapshot.taken_s
    tally, calls = _counted(snapshot)
    is_first = memory.seen_s == 0.0
    if is_first:
        memory = replace(memory, awake_s=now_s, is_midway=calls >= s.learn_samples)
    elif now_s - memory.seen_s > _BREAK_S:
        # Two looks around a break may be at the same heartbeat: hard evidence is seen anew.
        memory = replace(
            memory, awake_s=now_s, has_looked_away=True, is_deaf=True, hard_key="", hard_since_s=0.0
        )
    tally_s = now_s if tally != memory.tally and not is_first else memory.tally_s
    return replace(memory, tally=tally, tally_s=tally_s, calls=max(calls, memory.calls))


def _counted(snapshot: Snapshot) -> tuple[int, int]:
    """P2P calls and steps of all ranks; the most calls that one rank has made on one group."""
    tally = calls = 0
    for view in snapshot.ranks.values():
        if view.beat is None:
            continue
        tally += view.beat.step or 0
        for count in view.beat.p2p:
            tally += count.posted + count.done
        for group in view.beat.groups:
            if group.counter > calls:
                calls = group.counter
    return tally, calls


def _age_s(memory: Memory, snapshot: Snapshot, finding: Finding) -> float | None:
    """Age of the oldest stuck front; where nobody waits, of the newest movement of any rank."""
    if finding.kind not in (Kind.NONE, Kind.NO_PROGRESS):
        return finding.stalled_s
    heard = (view for view in snapshot.ranks.values() if view.link is Link.LIVE and is_alive(view))
    ages = [age for age in map(unmoved_s, heard) if age is not None]
    if memory.tally_s is not None:
        ages.append(snapshot.taken_s - memory.tally_s)
    return min(ages, default=None)
