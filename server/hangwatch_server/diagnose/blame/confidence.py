"""How sure a finding is: independent evidence combined as 1 - prod(1 - p), halved by rivals.

The weights are priors from the literature's reported precision, to be calibrated on fault programs.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

DEAD = 0.95
MISMATCH = 0.95
TIE = 0.55  # both sides are named
CYCLE = 0.95  # stacks confirm that the ranks are inside their calls
CYCLE_BY_COUNTERS = 0.8
UNABLE = 0.85  # stopped, D state, interpreter lock held
FROZEN_OUTSIDE = 0.85  # the same stack outside collectives in three captures
SEEN_OUTSIDE = 0.7
PROVEN_ABSENT = 0.6  # exact counters: it never entered
EXPLAINS_MOST = 0.6  # explains at least 95 % of the stalled ranks
SILENT_NODE = 0.5
SILENT_RANK = 0.3
EVERYBODY_ARRIVED = 0.6
NOBODY_KNOWN_MISSING = 0.4  # some wait in a collective of which nobody can say that it is this one
RENDEZVOUS = 0.8
FAULTY_GPU = 0.9
PARTLY_FINISHED = 0.5  # most members left the collective, the named ones did not
GUESSED_EDGE = 0.8  # factor: program order was used where the stack could not choose
BY_STACKS = 0.8  # factor: no counters, so that groups and calls are not known
BY_OTHERS = 0.85  # factor: no probe tells, NCCL RAS does
YOUNG = 0.6  # factor: so short a wait may be ordinary work between two heartbeats
CONTRADICTED = 0.55  # factor: counters that cannot be true together, or a stack that says otherwise
FROZEN_CAPTURES = 3
MOST = 0.95


def seen(reporting: int, world_size: int) -> float:
    """Factor for what was seen: half of a job unheard takes a quarter of the confidence."""
    if world_size <= 0:
        return 1.0
    return 0.5 + 0.5 * min(max(reporting / world_size, 0.0), 1.0)


def combine(evidence: Iterable[float], *, competing: int = 0, factor: float = 1.0) -> float:
    score = 1.0 - prod(1.0 - p for p in evidence)
    return round(min(score * factor / (1.0 + 0.5 * competing), 0.99), 3)
