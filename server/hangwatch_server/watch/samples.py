"""The newest stacks of each rank's process, so that snapshots can say what a rank is doing.

Memory only, bounded; what is durable is the captures service's matter.
"""

from __future__ import annotations

import dataclasses
from collections import deque

from hangwatch_agent import wire
from hangwatch_server import stacks
from hangwatch_server.detect import progress
from hangwatch_server.model import RankView, Snapshot, StackFacts
from hangwatch_server.stacks import Sample

PER_RANK = 8
# Older stacks say nothing of what a rank does now, unless it has stood still since.
KEEP_S = 120.0
# Of a core: a thread that slept in one place all the while used less, one that went on used more.
_STILL_CPU_SHARE = 0.001
_STILL_CPU_S = 0.05  # and the kernel counts in hundredths


class Samples:
    """Samples by job and rank, newest last; a new process starts anew."""

    def __init__(self) -> None:
        self._jobs: dict[str, dict[int, deque[Sample]]] = {}
        self._facts: dict[tuple[str, int], StackFacts | None] = {}

    def add(self, job: str, part: wire.CapturePart, now_s: float, *, is_kept: bool = True) -> None:
        """Keep one part; parts without stacks tell nothing here."""
        if not part.stacks:
            return
        kept = self._jobs.setdefault(job, {}).setdefault(part.rank, deque(maxlen=PER_RANK))
        if kept and kept[-1].part.pid != part.pid:
            kept.clear()
        sample = Sample(
            part=part, taken_s=now_s - part.age_s, capture=part.capture, is_kept=is_kept
        )
        at = len(kept)
        while at and kept[at - 1].taken_s > sample.taken_s:
            at -= 1
        if len(kept) == PER_RANK:
            index = stacks.superfluous(list(kept)[:2])
            del kept[index]
            at -= int(at > index)
        kept.insert(at, sample)
        self._facts.pop((job, part.rank), None)

    def into(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot with the facts of every rank whose present process was captured."""
        known = self._jobs.get(snapshot.job)
        if not known:
            return snapshot
        ranks = dict(snapshot.ranks)
        for rank in list(known):
            view = ranks.get(rank)
            if view is None or view.beat is None or known[rank][-1].part.pid != view.beat.pid:
                continue
            facts = self._facts_of(snapshot.job, view, snapshot.taken_s)
            if facts is not None:
                ranks[rank] = dataclasses.replace(view, stack=facts)
        return dataclasses.replace(snapshot, ranks=ranks)

    def forget(self, job: str) -> None:
        self._jobs.pop(job, None)
        for key in [key for key in self._facts if key[0] == job]:
            del self._facts[key]

    def _facts_of(self, job: str, view: RankView, now_s: float) -> StackFacts | None:
        kept = self._jobs[job][view.rank]
        age_s = now_s - kept[-1].taken_s
        if age_s > KEEP_S and not _has_stood_still(view, kept[-1].part, age_s):
            del self._jobs[job][view.rank]
            return None
        key = (job, view.rank)
        if key not in self._facts:
            self._facts[key] = stacks.facts(tuple(kept), now_s)
        facts = self._facts[key]
        return facts and dataclasses.replace(facts, age_s=age_s)


def _has_stood_still(view: RankView, part: wire.CapturePart, age_s: float) -> bool:
    """Whether neither the rank's counters nor its main thread went on since `part` was taken."""
    unmoved_s = progress.unmoved_s(view)
    if unmoved_s is not None and unmoved_s < age_s:
        return False
    if view.beat is None or part.process is None:
        return False
    used_s = view.beat.process.main_cpu_s - part.process.main_cpu_s
    return used_s <= _STILL_CPU_S + _STILL_CPU_SHARE * age_s
