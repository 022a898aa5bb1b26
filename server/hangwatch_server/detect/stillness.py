"""Whether every rank in training has stood still by the kernel's own account.

Only that tells a job in which nobody is in a collective and nothing will ever move from one that
waits for work: the threads of a job in a queue run for a moment every now and then.
"""

from __future__ import annotations

from dataclasses import replace

from hangwatch_server.detect import progress
from hangwatch_server.detect.memory import Stall, Still
from hangwatch_server.model import Link, RankView, Snapshot

# Of a core: a thread that slept in one place all the while used less, one that polls uses more.
_STILL_SHARE = 1e-5
_STILL_CPU_S = 0.011  # and the kernel counts in hundredths


def observe(stall: Stall, snapshot: Snapshot) -> Stall:
    """The stall with, for each rank in training, since when its main thread has not run."""
    still: dict[int, Still] = {}
    for view in _in_training(snapshot):
        assert view.beat is not None  # is_alive() looked
        main_cpu_s = view.beat.process.main_cpu_s
        known = stall.still.get(view.rank)
        if known is None or _has_run(known, main_cpu_s, snapshot.taken_s):
            known = Still(main_cpu_s, snapshot.taken_s - view.age_s)
        still[view.rank] = known
    return replace(stall, still=still)


def still_s(stall: Stall, snapshot: Snapshot) -> float:
    """For how long none of the ranks in training has run; 0 where one of them is not heard."""
    views = list(_in_training(snapshot))
    if any(view.link is not Link.LIVE for view in views):
        return 0.0
    return min((_still_s(view, stall, snapshot.taken_s) for view in views), default=0.0)


def _in_training(snapshot: Snapshot) -> list[RankView]:
    return [
        view
        for view in snapshot.ranks.values()
        if progress.is_alive(view) and view.beat is not None and view.beat.groups
    ]


def _still_s(view: RankView, stall: Stall, now_s: float) -> float:
    """The kernel's count of its runs is exact; else what its CPU time tells since we looked."""
    assert view.beat is not None  # is_alive() looked
    counted_s = progress.kernel_still_s(view.beat.process)
    if counted_s is not None:
        return counted_s
    known = stall.still.get(view.rank)
    return now_s - known.since_s if known is not None else 0.0


def _has_run(known: Still, main_cpu_s: float, now_s: float) -> bool:
    used_s = main_cpu_s - known.main_cpu_s
    return used_s > _STILL_CPU_S + _STILL_SHARE * (now_s - known.since_s) or used_s < 0
