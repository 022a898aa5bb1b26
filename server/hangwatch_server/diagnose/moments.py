"""What a job looks like at the moment of a hang, as far as the hang turns on it: evidence to keep.

1. The groups that somebody waits in or is behind in, worst first.
2. Process and GPU of the culprits and of one rank of each class that waits.
3. The last calls of the groups involved, one lane for each class of ranks that made the same ones.
4. Sends and receives of the same ranks, pair by pair.
5. The nodes that show signs of trouble of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from hangwatch_agent.wire import Depth, Entry, GroupBeat, RankBeat
from hangwatch_server import garbage, ranges
from hangwatch_server.diagnose import hardware, pairs, rank_detail, rows
from hangwatch_server.diagnose.calls import record, signature
from hangwatch_server.model import (
    Finding,
    GroupRow,
    GroupView,
    Lane,
    LaneCall,
    Link,
    Moment,
    NodeSigns,
    RankFacts,
    RankView,
    Snapshot,
)

MAX_GROUPS = 100
MAX_RANKS = 96
MAX_LANE_GROUPS = 4
MAX_LANES = 8  # of one group; the odd classes are the small ones, and come first
LANE_CALLS = 20
MAX_NODES = 64
_MAX_SIGNS = 6
_LATE = {Link.LATE: "its agent is late", Link.LOST: "its agent is not heard"}


def moment(snapshot: Snapshot, finding: Finding, at: datetime, why: str) -> Moment:
    with garbage.uncollected():
        held_up = [row for row in rows.group_rows(snapshot) if row.waiting or row.behind]
        held_up.sort(key=lambda row: (-row.stalled_s, -row.size, row.name))
        signs = _signs(snapshot)
        chosen = list(_chosen(snapshot, finding))
        return Moment(
            at=at,
            why=why,
            groups=tuple(held_up[:MAX_GROUPS]),
            groups_total=len(snapshot.groups),
            ranks=tuple(_facts(view) for view in chosen),
            lanes=tuple(_lanes(snapshot, finding, held_up)),
            nodes=tuple(signs[:MAX_NODES]),
            nodes_total=len({view.node for view in snapshot.ranks.values() if view.node}),
            pairs=pairs.pairs(snapshot, [view.rank for view in chosen]),
        )


def _chosen(snapshot: Snapshot, finding: Finding) -> Iterator[RankView]:
    named = [culprit.rank for culprit in (*finding.culprits, *finding.besides)]
    named += [step.rank for step in (*finding.cycle, *finding.path)]
    waiting = [edge.ranks for edge in finding.edges] or [finding.waiting]
    firsts = [rank for text in waiting for rank in ranges.parse(text)[:1]]
    for rank in list(dict.fromkeys((*named, *firsts)))[:MAX_RANKS]:
        if rank in snapshot.ranks:
            yield snapshot.ranks[rank]


def _facts(view: RankView) -> RankFacts:
    beat = view.beat
    return RankFacts(
        rank=view.rank,
        node=view.node,
        link=view.link,
        age_s=round(view.age_s, 1),
        depth=beat.depth if beat is not None else Depth.BARE,
        pid=beat.pid if beat is not None else None,
        step=beat.step if beat is not None else None,
        phase=beat.phase if beat is not None else "",
        process=rank_detail.process_of(beat.process) if beat is not None else None,
        gpu=rank_detail.gpu_of(beat.gpu) if beat is not None and beat.gpu is not None else None,
        lacks=beat.lacks if beat is not None else (),
    )


def _lanes(snapshot: Snapshot, finding: Finding, held_up: Iterable[GroupRow]) -> Iterator[Lane]:
    for gid in _involved(finding, held_up):
        group = snapshot.groups.get(gid)
        if group is not None:
            yield from _of_group(snapshot, group)


def _involved(finding: Finding, held_up: Iterable[GroupRow]) -> list[str]:
    """The finding's own group, then those in which a rank of its path, cycle or blame waits."""
    ranks = {step.rank for step in (*finding.path, *finding.cycle)}
    ranks.update(culprit.rank for culprit in (*finding.culprits, *finding.besides))
    found = [finding.group.id] if finding.group is not None else []
    found += [
        row.gid
        for row in held_up
        if not ranks.isdisjoint(ranges.parse(row.ranks)) and row.gid not in found
    ]
    return found[:MAX_LANE_GROUPS]


def _of_group(snapshot: Snapshot, group: GroupView) -> list[Lane]:
    classes: dict[tuple[object, ...], list[int]] = {}
    words: dict[int, GroupBeat | None] = {}
    for rank in group.ranks:
        view = snapshot.ranks.get(rank)
        words[rank] = _words(view.beat if view is not None else None, group.gid)
        classes.setdefault(_key(words[rank]), []).append(rank)
    ordered = sorted(classes.values(), key=lambda ranks: (len(ranks), ranks))
    return [_lane(group, ranks, words[ranks[0]]) for ranks in ordered[:MAX_LANES]]


def _words(beat: RankBeat | None, gid: str) -> GroupBeat | None:
    if beat is None or beat.is_destroyed:
        return None
    return next((group for group in reversed(beat.groups) if group.gid == gid), None)


def _key(words: GroupBeat | None) -> tuple[object, ...]:
    """Equal for ranks whose newest calls are the same; call sites may differ."""
    if words is None:
        return ()
    return (
        words.seq,
        tuple(
            (entry.seq, entry.op, entry.input_sizes, entry.is_retired)
            for entry in words.entries[-LANE_CALLS:]
        ),
    )


def _lane(group: GroupView, ranks: list[int], words: GroupBeat | None) -> Lane:
    entries = record.whole(words)[-LANE_CALLS:] if words is not None else ()
    plausible = [entry for entry in entries if signature.is_plausible(entry)]
    entered = words.seq if words is not None else None
    newest = max((entry.seq for entry in plausible), default=None)
    return Lane(
        gid=group.gid,
        group="default_pg" if group.description == "default_pg" else group.name,
        ranks=ranges.text(ranks),
        calls=tuple(_call(entry) for entry in plausible),
        entered=max((n for n in (entered, newest) if n is not None), default=None),
    )


def _call(entry: Entry) -> LaneCall:
    text = signature.text(entry)
    return LaneCall(
        seq=entry.seq,
        op=entry.op,
        shape=text.removeprefix(entry.op).strip(),
        is_finished=entry.is_retired,
        site=entry.site,
    )


def _signs(snapshot: Snapshot) -> list[NodeSigns]:
    by_node: dict[str, list[RankView]] = {}
    for view in snapshot.ranks.values():
        if view.node:
            by_node.setdefault(view.node, []).append(view)
    found = [
        NodeSigns(node=node, ranks=ranges.text(v.rank for v in views), signs=signs)
        for node, views in by_node.items()
        if (signs := tuple(dict.fromkeys(s for view in views for s in _of_rank(view))))
    ]
    cut = [_bounded(item) for item in found]
    return sorted(cut, key=lambda item: (-len(item.signs), item.node))


def _bounded(item: NodeSigns) -> NodeSigns:
    return NodeSigns(node=item.node, ranks=item.ranks, signs=item.signs[:_MAX_SIGNS])


def _of_rank(view: RankView) -> Iterator[str]:
    if view.link is not Link.LIVE:
        yield _LATE[view.link]
    beat = view.beat
    if beat is None:
        return
    failure = hardware.words(beat)
    if failure:
        yield failure
    gpu = beat.gpu
    if gpu is not None:
        if gpu.xid and not failure:
            yield f"GPU {gpu.index} raised Xid {gpu.xid[-1]}"
        if gpu.ecc_errors:
            yield f"GPU {gpu.index} has {gpu.ecc_errors} uncorrected memory errors"
        if gpu.throttle:
            yield f"GPU {gpu.index} holds its clocks down: {', '.join(gpu.throttle[:3])}"
    if beat.process.state == "D":
        where = f" in {beat.process.wchan}" if beat.process.wchan else ""
        yield f"rank {view.rank} sleeps uninterruptibly{where}"
