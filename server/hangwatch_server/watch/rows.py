"""Rows for pages and the API out of live state: nodes, depths and the timeline. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from hangwatch_agent.wire import Depth
from hangwatch_server.board import NodeState
from hangwatch_server.model import DepthRow, Link, NodeHistory, NodeRow, RankRow, TimelinePoint
from hangwatch_server.watch.watched import Point

_LONG_SPAN_S, _SHORT_SPAN_S = 30.0, 5.0
_YOUNG_S = 300.0
_DEPTHS = (Depth.BARE, Depth.RAS, Depth.PROBE)  # the least first


def of_node(node: NodeState, history: Mapping[str, NodeHistory], now: datetime) -> NodeRow:
    """A node that has an agent, or had one until a moment ago."""
    own = history.get(node.name, NodeHistory())
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
        incidents_30d=own.incidents,
        dropped=node.dropped,
        last_seen=now - timedelta(seconds=node.age_s),
        gpu_hours_lost_30d=own.gpu_hours_lost,
        last_incident_at=own.last_incident_at,
        clock_ahead_s=None if node.clock_ahead_s is None else round(node.clock_ahead_s, 1),
    )


def timeline(points: Sequence[Point], now_s: float) -> tuple[TimelinePoint, ...]:
    """Calls per second and reporting rank between neighbouring points, oldest first."""
    return tuple(
        TimelinePoint(
            ago_s=round(now_s - after.at_s, 1),
            calls_per_s=round(_rate(before, after), 3),
            state=after.state,
            phase=after.phase,
            attempt=after.attempt,
        )
        for before, after in itertools.pairwise(points)
    )


def pace(points: Iterable[Point], now_s: float) -> tuple[TimelinePoint, ...]:
    """The same over spans of 30 s, of 5 s while the job is young; oldest first.

    Spans begin at multiples of their length, so that a line drawn of them stands still until the
    next one is over.
    """
    known = list(points)
    if not known:
        return ()
    span_s = _LONG_SPAN_S if now_s - known[0].at_s > _YOUNG_S else _SHORT_SPAN_S
    first = {point.at_s // span_s: point for point in reversed(known)}
    chosen = sorted(first.values(), key=lambda point: point.at_s)
    return timeline(chosen, now_s)


def depths(ranks: Iterable[RankRow]) -> tuple[DepthRow, ...]:
    """Nodes alike in depth, in what is lacking and in whether they are heard; odd ones first."""
    by_node: dict[str, list[RankRow]] = {}
    for row in ranks:
        by_node.setdefault(row.node, []).append(row)
    alike: dict[tuple[Link, Depth, tuple[str, ...]], list[str]] = {}
    for node, members in by_node.items():
        lacks = dict.fromkeys(lack for row in members for lack in row.lacks)
        depth = min((row.depth for row in members), key=_DEPTHS.index)
        alike.setdefault((members[0].link, depth, tuple(lacks)), []).append(node)
    found = [_depth_row(key, nodes, by_node) for key, nodes in alike.items()]
    return tuple(sorted(found, key=lambda row: (row.link is Link.LIVE, len(row.nodes), row.nodes)))


def _depth_row(
    key: tuple[Link, Depth, tuple[str, ...]], nodes: list[str], by_node: Mapping[str, list[RankRow]]
) -> DepthRow:
    link, depth, lacks = key
    here = [row for node in nodes for row in by_node[node]]
    return DepthRow(
        nodes=tuple(sorted(nodes)),
        ranks=len(here),
        reporting=sum(row.pid is not None and row.link is Link.LIVE for row in here),
        depth=depth,
        link=link,
        lacks=lacks,
    )


def _rate(before: Point, after: Point) -> float:
    # Counters start anew with a new process, which is no negative progress.
    calls = max(0, after.calls - before.calls)
    return calls / max(after.at_s - before.at_s, 0.001) / max(after.reporting, 1)
