"""Rows for pages and the API out of live state: nodes and the timeline. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from hangwatch_server.board import NodeState
from hangwatch_server.model import NodeRow, TimelinePoint
from hangwatch_server.watch.watched import Point


def of_node(node: NodeState, incidents_by_node: Mapping[str, int], now: datetime) -> NodeRow:
    """A node that has an agent, or had one until a moment ago."""
    return NodeRow(
        name=node.name,
        link=node.link,
        version=node.hello.version,
        age_s=round(node.age_s, 1),
        ranks=node.ranks,
        jobs=node.jobs,
        stacks=node.hello.stacks,
        stacks_remedy=node.hello.stacks_remedy,
        depth=node.depth,
        incidents_30d=incidents_by_node.get(node.name, 0),
        dropped=node.dropped,
        last_seen=now - timedelta(seconds=node.age_s),
    )


def timeline(points: Sequence[Point], now_s: float) -> tuple[TimelinePoint, ...]:
    """Calls per second and reporting rank between neighbouring points, oldest first."""
    return tuple(
        TimelinePoint(
            ago_s=round(now_s - after.at_s, 1),
            calls_per_s=round(_rate(before, after), 3),
            state=after.state,
        )
        for before, after in itertools.pairwise(points)
    )


def _rate(before: Point, after: Point) -> float:
    # Counters start anew with a new process, which is no negative progress.
    calls = max(0, after.calls - before.calls)
    return calls / max(after.at_s - before.at_s, 0.001) / max(after.reporting, 1)
