"""Telemetry that is incomplete or old: what a monitor gets when agents, frames and dumps are lost.

The damage is done to ranks that are not at fault. Old reports are truthful: the rank was at that
place of its program at that time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

import msgspec
from tests.synthetic import jobs
from tests.synthetic.jobs import Job
from tests.synthetic.plights import Plight

from hangwatch_server.model import Link, RankView, Snapshot
from hangwatch_server.simulate import telemetry
from hangwatch_server.simulate.telemetry import Place, Ring

LATE_S = 5.0
LOST_S = 20.0


@dataclass(frozen=True, slots=True)
class Damaged:
    """Two snapshots 2 s apart, and whom the damage touched."""

    earlier: Snapshot
    later: Snapshot
    touched: frozenset[int]


def none(job: Job, _share: float, _rng: Random) -> Damaged:
    return Damaged(*jobs.pair(job), frozenset())


def silent(job: Job, share: float, rng: Random) -> Damaged:
    """Agents were lost: long before the hang, in the middle of it, or they never reported."""
    touched = others(job, share, rng)
    views = {rank: _silent_view(job, rank, rng) for rank in sorted(touched)}
    return _with_views(job, views)


def stale(job: Job, share: float, rng: Random) -> Damaged:
    """Heartbeats were lost: the newest report of some ranks is up to 19 s old."""
    touched = others(job, share, rng)
    views = {rank: _old_view(job, rank, rng.uniform(1.0, 19.0), rng) for rank in sorted(touched)}
    return _with_views(job, views)


def skewed(job: Job, share: float, rng: Random) -> Damaged:
    """The clocks of some ranks run up to a tenth fast or slow, and with them all their ages."""
    touched = others(job, share, rng)
    factors = {rank: rng.uniform(0.9, 1.1) for rank in touched}
    earlier, later = jobs.pair(job)
    return Damaged(_skew(earlier, factors), _skew(later, factors), frozenset(touched))


def wrapped(job: Job, share: float, rng: Random) -> Damaged:
    """Small rings that wrapped, and record numbers that start anywhere: on every rank."""
    rings = {
        rank: Ring(kept=rng.randint(1, 4), first_record=rng.randrange(0, 1_000_000))
        for rank in range(job.mesh.size)
    }
    return Damaged(*jobs.pair(job, rings=rings), frozenset(rings))


def not_dumped(job: Job, share: float, rng: Random) -> Damaged:
    """The dumps of some ranks are older than their counters, with or without comparable numbers."""
    rings = {
        rank: Ring(is_current=False, has_seq=rng.random() < 0.5)
        for rank in sorted(others(job, share, rng))
    }
    return Damaged(*jobs.pair(job, rings=rings), frozenset(rings))


DAMAGES: dict[str, Callable[[Job, float, Random], Damaged]] = {
    "silent": silent,
    "stale": stale,
    "skewed": skewed,
    "wrapped": wrapped,
    "not_dumped": not_dumped,
}


def others(job: Job, share: float, rng: Random) -> set[int]:
    """About this share of the ranks that have no part in the fault; at least one is left."""
    involved = job.truth.culprits | job.truth.allowed
    fit = [rank for rank in range(job.mesh.size) if rank not in involved]
    number = int(share * len(fit) + rng.random())
    return set(rng.sample(fit, max(0, min(number, len(fit) - 1))))


def _with_views(job: Job, views: dict[int, RankView]) -> Damaged:
    earlier, later = jobs.pair(job)
    older = {rank: replace(v, age_s=v.age_s + jobs.APART_S) for rank, v in views.items()}
    return Damaged(
        replace(earlier, ranks={**earlier.ranks, **views}),
        replace(later, ranks={**later.ranks, **older}),
        frozenset(views),
    )


def _silent_view(job: Job, rank: int, rng: Random) -> RankView:
    if rng.random() < 0.2:
        # At start-up, a rank that no agent ever spoke of is the very thing that others wait for.
        known = f"node-{job.mesh.node_of(rank)}"
        node = known if job.plights.get(rank, Plight()).waits else rng.choice(("", known))
        return RankView(rank=rank, node=node, link=Link.LOST, age_s=0.0, beat=None)
    return _old_view(job, rank, rng.uniform(LOST_S + 1.0, 120.0), rng)


def _old_view(job: Job, rank: int, age_s: float, rng: Random) -> RankView:
    """The report that the rank sent `age_s` ago: of the hang, or of a time before it."""
    link = Link.LOST if age_s > LOST_S else Link.LATE if age_s > LATE_S else Link.LIVE
    if age_s < job.stall_s - 3.0:
        beat = jobs.beat_at(job, rank, job.place(rank), job.stall_s - age_s)
    else:
        ring = Ring(is_current=False, has_seq=rng.random() < 0.8)
        beat = jobs.beat_at(job, rank, _earlier(job, rank, rng), rng.uniform(0.0, 0.9), ring)
    node = f"node-{job.mesh.node_of(rank)}"
    return RankView(rank=rank, node=node, link=link, age_s=age_s, beat=beat)


def _earlier(job: Job, rank: int, rng: Random) -> Place:
    """A place that the rank has passed."""
    now = job.place(rank)
    done = rng.randint(0, now.done)
    if done == now.done:
        return now
    return telemetry.passed(job.programs[rank], done, now.pending, job.shape)


def _skew(snapshot: Snapshot, factors: dict[int, float]) -> Snapshot:
    views = dict(snapshot.ranks)
    for rank, factor in factors.items():
        view = views[rank]
        if view.beat is not None:
            groups = tuple(
                msgspec.structs.replace(group, stall_s=group.stall_s * factor)
                for group in view.beat.groups
            )
            beat = msgspec.structs.replace(view.beat, groups=groups)
            views[rank] = replace(view, beat=beat)
    return replace(snapshot, ranks=views)
