"""Stacks that a test made up, as the server sums them up: the newest, and for how long the same."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from hangwatch_server.model import Activity, StackFacts

Taken = tuple[float, Activity, str]  # when, what the main thread did, and its leaf


def facts(rank: int, taken: Iterable[Taken], at_s: float) -> StackFacts | None:
    """What the looks at a rank say at `at_s`, the oldest first; None without any."""
    latest = list(taken)[::-1]
    if not latest:
        return None
    newest_s, activity, leaf = latest[0]
    run = list(itertools.takewhile(lambda item: item[2] == leaf, latest))
    return StackFacts(
        pid=100 + rank,
        age_s=at_s - newest_s,
        where=leaf,
        leaf=leaf,
        activity=activity,
        same_leaf_captures=len(run),
        same_leaf_s=newest_s - run[-1][0],
        capture=f"c{newest_s:g}",
    )
