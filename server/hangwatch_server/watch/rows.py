"""Rows for pages and the API out of live state: nodes, depths and the timeline. Pure."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from hangwatch_agent.wire import Depth
from hangwatch_server.board import NodeState
from hangwatch_server.model import DepthRow, Link, NodeHistory, NodeRow, RankRow, TimelinePoint
from hangwatch_server.watch.watched import TIMELINE_S, Point

_LONG_SPAN_S, _SHORT_SPAN_S = 30.0, 5.0
_YOUNG_S = 300.0
STORED_SPAN_S = 10.0  # the page draws a longer silence between two points as a gap
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


def timeline(points: Iterable[Point], now_s: float) -> tuple[TimelinePoint, ...]:
    """Calls per second and reporting rank, oldest first."""
    return tuple(
        TimelinePoint(
            ago_s=round(now_s - point.at_s, 1),
            calls_per_s=round(point.calls_per_s, 3),
            state=point.state,
            phase=point.phase,
            attempt=point.attempt,
        )
        for point in points
    )


def restored(stored: Iterable[TimelinePoint], now_s: float) -> list[Point]:
    """What an earlier process told of a job, on this one's clock, as far as it is still of use."""
    return [
        Point(now_s - told.ago_s, told.calls_per_s, told.state, told.phase, told.attempt)
        for told in stored
        if told.ago_s < TIMELINE_S
    ]


def pace(points: Iterable[Point], now_s: float) -> tuple[TimelinePoint, ...]:
    """The same over spans of 30 s, of 5 s while the job is young; oldest first.

    Spans begin at multiples of their length, so that a line drawn of them stands still until the
    next one is over.
    """
    known = list(points)
    if not known:
        return ()
    span_s = _LONG_SPAN_S if now_s - known[0].at_s > _YOUNG_S else _SHORT_SPAN_S
    over_s = now_s // span_s * span_s
    return timeline(_means((point for point in known if point.at_s <= over_s), span_s), now_s)


def thinned(points: Iterable[Point]) -> list[Point]:
    """What is stored of a timeline: few enough points, and each change of state where it was."""
    return _means(points, STORED_SPAN_S, is_cut_by_change=True)


def _means(
    points: Iterable[Point], span_s: float, *, is_cut_by_change: bool = False
) -> list[Point]:
    """One point for each span: its mean, told at its last moment with what held then."""

    def key(point: Point) -> tuple[object, ...]:
        told = (point.state, point.phase, point.attempt) if is_cut_by_change else ()
        return math.ceil(point.at_s / span_s), *told

    return [_mean(list(run)) for _, run in itertools.groupby(points, key=key)]


def _mean(run: Sequence[Point]) -> Point:
    mean = sum(point.calls_per_s for point in run) / len(run)
    return dataclasses.replace(run[-1], calls_per_s=mean)


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
