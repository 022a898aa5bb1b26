"""Who arrives last: the ranks that the others waited for, counted over the waits that ended.

Waits are seen from about a second on, since counters travel once a second. A rank that is always
last is a straggler: worth a line beside the verdict, never an alarm by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hangwatch_server.detect import words
from hangwatch_server.detect.memory import Arrival, Memory, Stall
from hangwatch_server.detect.settings import DetectSettings
from hangwatch_server.model import Evidence, Finding, Kind

_KEPT = 200
_MOST_LAST = 8  # where more than these are waited for, no one of them is the straggler
_RANKED = 3
_LEAST_WAIT_S = 0.5


@dataclass(frozen=True, slots=True)
class Straggler:
    """One rank's part in the waits of one group ("" for all of the job)."""

    rank: int
    group: str
    last: int  # waits in which it came last
    waits: int  # waits that were seen
    wait_s: float  # usual time that the others waited for it


def observe(stall: Stall, finding: Finding, stalled_s: float) -> Stall:
    """The stall with who is waited for now: whoever is named last before it ends came last."""
    if finding.kind is not Kind.MISSING_RANKS or not finding.culprits:
        return stall
    ranks = tuple(culprit.rank for culprit in finding.culprits)
    group = finding.group.name if finding.group is not None else ""
    return replace(stall, last=ranks, group=group, wait_s=stalled_s)


def learn(memory: Memory, stall: Stall, s: DetectSettings) -> Memory:
    """The memory with one more wait that ended, and what all of them say now."""
    if not stall.last or len(stall.last) > _MOST_LAST or stall.wait_s < _LEAST_WAIT_S:
        return memory
    arrival = Arrival(ranks=stall.last, group=stall.group, wait_s=stall.wait_s)
    arrivals = (*memory.arrivals, arrival)[-_KEPT:]
    return replace(memory, arrivals=arrivals, stragglers=evidence(arrivals, s))


def ranked(arrivals: Sequence[Arrival], s: DetectSettings) -> tuple[Straggler, ...]:
    """Those that came last in most of the waits, of the whole job or of one group; first the worst.

    A rank that is last everywhere is told once, for the job.
    """
    found = list(_stragglers(arrivals, "", s))
    known = {straggler.rank for straggler in found}
    for group in sorted({arrival.group for arrival in arrivals if arrival.group}):
        own = [arrival for arrival in arrivals if arrival.group == group]
        found.extend(item for item in _stragglers(own, group, s) if item.rank not in known)
    found.sort(key=lambda item: (-item.last * item.wait_s, item.rank))
    return tuple(found[:_RANKED])


def _stragglers(arrivals: Sequence[Arrival], group: str, s: DetectSettings) -> Iterable[Straggler]:
    if len(arrivals) < s.straggler_waits:
        return
    counts = Counter(rank for arrival in arrivals for rank in arrival.ranks)
    for rank, last in counts.items():
        if last >= s.straggler_share * len(arrivals):
            waits = sorted(arrival.wait_s for arrival in arrivals if rank in arrival.ranks)
            yield Straggler(rank, group, last, len(arrivals), waits[len(waits) // 2])


def evidence(arrivals: Sequence[Arrival], s: DetectSettings) -> tuple[Evidence, ...]:
    """A line for each straggler."""
    return tuple(
        Evidence(
            kind="straggler",
            text=(
                f"Rank {item.rank} arrived last in {item.last} of the last {item.waits} waits"
                f"{f' of {words.group(item.group)}' if item.group else ''},"
                f" usually {item.wait_s:.1f} s after the others."
            ),
        )
        for item in ranked(arrivals, s)
    )
