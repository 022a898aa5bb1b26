"""The bound for ranks without counters: how many samples in a row may look stuck by chance.

After ParaStack (SC'17): where only stacks can be sampled, a job at work looks stuck in some of its
samples too. A hang is called when the chance that a job at work gives so many in a row is under a
stated rate. Samples of one long call depend on each other, so the chance of each further one is
that of a stuck look *after* a stuck look, p * q ** (k - 1), both at their upper confidence limit.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hangwatch_agent import wire
from hangwatch_server import ranges
from hangwatch_server.detect import progress
from hangwatch_server.detect.memory import Sampling
from hangwatch_server.detect.settings import DetectSettings
from hangwatch_server.model import Activity, Finding, RankView, Snapshot

_KEPT = 512  # outcomes that are remembered
_INSIDE = frozenset({Activity.COLLECTIVE, Activity.RENDEZVOUS})
_Z = 2.326  # one-sided 99 %
_MOST_RANKS = 64


@dataclass(frozen=True, slots=True)
class Bound:
    """What the samples say: `run` in a row look stuck, `needed` of them make a hang."""

    run: int
    needed: int
    chance: float  # of one sample to look stuck while the job works, at its upper limit
    samples: int  # of the job at work, before this run
    is_assumed: bool  # too few of them to say: the chance is an assumption for the most part
    rate: float

    @property
    def is_met(self) -> bool:
        return self.run >= self.needed

    def in_words(self) -> str:
        basis = f"by {self.samples} samples of it at work"
        if self.is_assumed:
            basis = f"an assumption: only {self.samples} samples show it at work"
        return (
            f"no counters: {self.run} samples in a row look stuck, {self.needed} make a hang;"
            f" at most {self.chance:.0%} of a working job's look so ({basis}),"
            f" so chance gives such a run less than once in {1 / self.rate:,.0f} times"
        )


def is_needed(snapshot: Snapshot, finding: Finding) -> bool:
    """Whether the finding rests on samples: nobody who waits has counters.

    Where the kernel says that none of them has run all the while, the clock is exact without.
    """
    if finding.group is not None and any(finding.group.id == told.gid for told in snapshot.ras):
        return False  # NCCL RAS has counted their calls
    waiting = [snapshot.ranks[r] for r in ranges.parse(finding.waiting) if r in snapshot.ranks]
    bare = [view for view in waiting if view.beat is not None and is_bare(view)]
    return bool(bare) and len(bare) == len(waiting) and not all(map(_is_still, bare))


def is_bare(view: RankView) -> bool:
    return view.beat is not None and view.beat.depth is wire.Depth.BARE and not view.beat.groups


def is_inside(view: RankView) -> bool:
    """Whether a rank without counters was last seen inside a collective or a rendezvous."""
    return is_bare(view) and view.stack is not None and view.stack.activity in _INSIDE


def _is_still(view: RankView) -> bool:
    still_s = progress.kernel_still_s(view.beat.process) if view.beat is not None else None
    return still_s is not None and still_s >= 1.0


def observe(sampling: Sampling, snapshot: Snapshot, s: DetectSettings) -> Sampling:
    """The memory with one more sample of the job, if stacks newer than the last one are there."""
    views = [v for v in snapshot.ranks.values() if v.stack is not None and is_bare(v)][:_MOST_RANKS]
    if not views:
        return sampling
    taken_s = max(snapshot.taken_s - view.stack.age_s for view in views if view.stack is not None)
    if sampling.newest_s is not None and taken_s < sampling.newest_s + s.sample_apart_s:
        return sampling
    keys = {view.rank: _key(view) for view in views}
    if sampling.newest_s is None:
        return replace(sampling, keys=keys, newest_s=taken_s)
    outcomes = (*sampling.outcomes, _looks_stuck(sampling, views, keys))[-_KEPT:]
    return Sampling(keys=keys, newest_s=taken_s, outcomes=outcomes)


def _key(view: RankView) -> str:
    assert view.stack is not None  # observe() looked
    return f"{view.beat.pid if view.beat else 0} {view.stack.activity} {view.stack.leaf}"


def _looks_stuck(sampling: Sampling, views: Iterable[RankView], keys: dict[int, str]) -> bool:
    """Somebody waits inside, and everybody stands where the last sample saw them."""
    if not any(map(is_inside, views)):
        return False
    return all(sampling.keys.get(rank, key) == key for rank, key in keys.items())


def bound(sampling: Sampling, s: DetectSettings) -> Bound:
    """The bound for the run of stuck looks that lasts now.

    1. Split the outcomes into the run at the end and what was before: the job at work.
    2. p: the upper limit of a stuck look; q: of a stuck look after a stuck look.
    3. The run must be so long that p * q ** (k - 1) is under the rate, and twice as long as any
       run that ended by itself.
    """
    run = _run(sampling.outcomes)
    before = sampling.outcomes[: len(sampling.outcomes) - run]
    p = _chance(sum(before), len(before), s)
    after = [now for last, now in itertools.pairwise(before) if last]
    q = max(p, _chance(sum(after), len(after), s))
    needed = 1 + math.ceil(math.log(s.false_alarm_rate / p) / math.log(q))
    needed = max(needed, 2 * _longest(before) + 1, 2)
    return Bound(run, needed, q, len(before), len(before) < s.sample_least, s.false_alarm_rate)


def _chance(stuck: int, count: int, s: DetectSettings) -> float:
    """Upper limit of a share (Wilson); the assumption while there are too few samples to say."""
    if count < s.sample_least:
        assumed = s.sample_assumed
        stuck, count = stuck + round(assumed * s.sample_least), count + s.sample_least
        return min(max(stuck / count, assumed), 0.99)
    share, z2 = stuck / count, _Z * _Z
    middle = share + z2 / (2 * count)
    spread = _Z * math.sqrt(share * (1 - share) / count + z2 / (4 * count * count))
    return min(max((middle + spread) / (1 + z2 / count), 0.01), 0.99)


def _run(outcomes: Sequence[bool]) -> int:
    count = 0
    for outcome in reversed(outcomes):
        if not outcome:
            break
        count += 1
    return count


def _longest(outcomes: Sequence[bool]) -> int:
    longest = current = 0
    for outcome in outcomes:
        current = current + 1 if outcome else 0
        longest = max(longest, current)
    return longest
