"""What Prometheus is told of all jobs after each look: counts alone, of bounded number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from hangwatch_server import metrics
from hangwatch_server.model import Link, State
from hangwatch_server.watch.watched import Watched


def tell(watched: Collection[Watched], links: Collection[Link]) -> None:
    """Every state and link is told, those of nobody as 0: a series that is absent alarms nobody."""
    metrics.jobs_watched.set(len(watched))
    by_state = Counter(one.verdict.state for one in watched)
    for state in State:
        metrics.jobs.labels(state.value).set(by_state[state])
    by_link = Counter(links)
    for link in Link:
        metrics.nodes.labels(link.value).set(by_link[link])
    metrics.ranks_expected.set(sum(one.verdict.coverage.world_size for one in watched))
    metrics.ranks_reporting.set(sum(one.verdict.coverage.reporting for one in watched))
