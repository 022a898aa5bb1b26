"""Rows for the rank grid and the table of groups: the same facts as the findings, one by one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import inf, prod

from hangwatch_agent.wire import Depth, Entry, RankBeat
from hangwatch_server import garbage, places, ranges
from hangwatch_server.diagnose import survey
from hangwatch_server.diagnose.calls import siblings, signature
from hangwatch_server.diagnose.pending import (
    collectives,
    monitored,
    ops,
    p2p,
    ras,
    rendezvous,
    seen,
)
from hangwatch_server.diagnose.pending.ops import PendingOp
from hangwatch_server.diagnose.process import Fate
from hangwatch_server.diagnose.settings import DEFAULT
from hangwatch_server.diagnose.survey import Survey
from hangwatch_server.model import (
    Finding,
    GroupMember,
    GroupRow,
    GroupView,
    Link,
    Place,
    RankRow,
    RankView,
    Snapshot,
)

_RAS_LACK = (
    "NCCL RAS counts its calls; for their order, sizes and roots start the job with `hangwatch run`"
)


# Bytes of an element, by the names that recorders use: "Float", "BFloat16", "c10::Half".
_WIDTHS = {
    "byte": 1, "char": 1, "bool": 1, "uint8": 1, "int8": 1,
    "half": 2, "bfloat16": 2, "short": 2, "int16": 2, "float16": 2,
    "float": 4, "int": 4, "float32": 4, "int32": 4,
    "double": 8, "long": 8, "float64": 8, "int64": 8,
}  # fmt: skip
_DIGITS = re.compile(r"\d+")
MOST_KEPT = 16_384  # names and rank sets, of all jobs
_LARGE = 1024


@dataclass(frozen=True, slots=True)
class Tables:
    """Both tables of a job at one moment, out of one pass over its snapshot."""

    ranks: tuple[RankRow, ...]
    groups: tuple[GroupRow, ...]


def tables(snapshot: Snapshot, finding: Finding) -> Tables:
    with garbage.uncollected():
        looked = survey.survey(snapshot, DEFAULT)
        pending = _all_pending(looked)
        return Tables(_rank_rows(looked, pending, finding), _group_rows(looked, pending))


def rank_rows(snapshot: Snapshot, finding: Finding) -> tuple[RankRow, ...]:
    with garbage.uncollected():
        looked = survey.survey(snapshot, DEFAULT)
        return _rank_rows(looked, _all_pending(looked), finding)


def _rank_rows(looked: Survey, pending: list[PendingOp], finding: Finding) -> tuple[RankRow, ...]:
    told = _Told(finding, pending)
    return tuple(_rank_row(looked, view, told) for _, view in sorted(looked.snapshot.ranks.items()))


def rank_row(looked: Survey, finding: Finding, rank: int) -> RankRow:
    """The row of one rank; KeyError for one that the snapshot does not have."""
    return _rank_row(looked, looked.snapshot.ranks[rank], _Told(finding, _all_pending(looked)))


class _Told:
    """What a finding and the pending calls say of single ranks."""

    def __init__(self, finding: Finding, pending: list[PendingOp]) -> None:
        self.fronts = _first_waits(pending)
        self.culprits = {culprit.rank: culprit for culprit in finding.culprits}
        self.named = frozenset(ranges.parse(finding.culprit_ranks))
        self.waiting = frozenset(ranges.parse(finding.waiting))


def group_rows(snapshot: Snapshot) -> tuple[GroupRow, ...]:
    with garbage.uncollected():
        looked = survey.survey(snapshot, DEFAULT)
        return _group_rows(looked, _all_pending(looked))


def _group_rows(looked: Survey, pending: list[PendingOp]) -> tuple[GroupRow, ...]:
    """Those that have waited longest first, then large before small, in the order of numbers."""
    by_gid = _by_group(pending)
    groups = looked.snapshot.groups.values()
    found = [_group_row(looked, group, by_gid.get(group.gid, [])) for group in groups]
    return tuple(sorted(found, key=_place))


def _place(row: GroupRow) -> tuple[float, int, tuple[str, tuple[int, ...]], str]:
    since_s = -row.stalled_s if row.waiting else 1.0
    return since_s, -row.size, _by_numbers(row.name), row.ranks


@lru_cache(maxsize=MOST_KEPT)
def _by_numbers(name: str) -> tuple[str, tuple[int, ...]]:
    """Sorts "dp-9" before "dp-10"."""
    return _DIGITS.sub("", name), tuple(int(digits[:9]) for digits in _DIGITS.findall(name))


def group_row(snapshot: Snapshot, gid: str) -> GroupRow:
    """One group with its members; KeyError for a gid that the snapshot does not have."""
    looked = survey.survey(snapshot, DEFAULT)
    pending = _by_group(_all_pending(looked)).get(gid, [])
    return _group_row(looked, snapshot.groups[gid], pending, has_members=True)


def _all_pending(looked: Survey) -> list[PendingOp]:
    known = [
        *collectives.pending(looked),
        *p2p.pending(looked),
        *monitored.pending(looked),
        *rendezvous.pending(looked),
    ]
    told = ras.pending(looked, known)
    return [*known, *told, *([] if told else seen.pending(looked))]


def _by_group(pending: Iterable[PendingOp]) -> dict[str, list[PendingOp]]:
    found: dict[str, list[PendingOp]] = {}
    for op in pending:
        if op.gid:
            found.setdefault(op.gid, []).append(op)
    return found


def _first_waits(pending: Iterable[PendingOp]) -> dict[int, PendingOp]:
    """Per rank the operation that it has waited in for longest."""
    found: dict[int, PendingOp] = {}
    for op in sorted(pending, key=lambda op: (-op.stalled_s, op.sort_key)):
        for rank in op.have:
            found.setdefault(rank, op)
    return found


def _state(looked: Survey, view: RankView, told: _Told) -> str:
    fate = looked.fate(view.rank)
    if view.rank in told.named:
        return "culprit"
    if view.beat is None:
        return "unknown"
    if fate is Fate.GONE:
        return "finished" if view.beat.process.exit_code == 0 else "gone"
    if view.link is not Link.LIVE:
        return "silent"
    if view.beat.is_destroyed:
        return "finished"
    return "waiting" if view.rank in told.waiting else "healthy"


def _rank_row(looked: Survey, view: RankView, told: _Told) -> RankRow:
    beat, state = view.beat, _state(looked, view, told)
    culprit, front = told.culprits.get(view.rank), told.fronts.get(view.rank)
    stack = looked.recent_stack(view.rank)
    is_waiting = front is not None and state in ("waiting", "culprit", "silent")
    group = looked.snapshot.groups.get(front.gid) if front is not None else None
    return RankRow(
        rank=view.rank,
        node=view.node,
        local_rank=beat.local_rank if beat is not None else None,
        pid=beat.pid if beat is not None else None,
        state=state,
        link=view.link,
        depth=_depth(looked, beat),
        age_s=view.age_s if beat is not None else None,
        process_state=beat.process.state if beat is not None else "",
        step=beat.step if beat is not None else None,
        phase=beat.phase if beat is not None else "",
        waits_in=ops.label(front, group) if is_waiting and front is not None else "",
        waits_s=front.stalled_s if is_waiting and front is not None else None,
        condition=culprit.condition if culprit is not None else None,
        where=culprit.where if culprit is not None else (stack.where if stack is not None else ""),
        cpu_share=beat.process.main_cpu_share if beat is not None else None,
        gpu=beat.gpu.index if beat is not None and beat.gpu is not None else None,
        lacks=_lacks(looked, beat),
        signature=stack.signature if stack is not None else "",
    )


def _depth(looked: Survey, beat: RankBeat | None) -> Depth:
    """A bare rank that NCCL RAS tells of is seen as deep as that."""
    if beat is None:
        return Depth.BARE
    return Depth.RAS if _is_told_by_ras(looked, beat) else beat.depth


def _lacks(looked: Survey, beat: RankBeat | None) -> tuple[str, ...]:
    if beat is None:
        return ()
    return (_RAS_LACK,) if _is_told_by_ras(looked, beat) else beat.lacks


def _is_told_by_ras(looked: Survey, beat: RankBeat) -> bool:
    return beat.depth is Depth.BARE and beat.rank in looked.told_by_ras


def _group_row(
    looked: Survey, group: GroupView, pending: list[PendingOp], *, has_members: bool = False
) -> GroupRow:
    behind = sorted({rank for op in pending for rank in (*op.absent, *op.unknown)})
    waiting = sorted({rank for op in pending for rank in op.have})
    main = max(pending, key=lambda op: op.stalled_s, default=None)
    row = GroupRow(
        gid=group.gid,
        name=group.name,
        description=group.description,
        backend=group.backend,
        ranks=_ranks_text(group),
        size=len(group.ranks),
        epoch=group.epoch,
        at=_front(looked, group.gid),
        op=main.op if main is not None else "",
        behind=ranges.text(behind),
        waiting=ranges.text(waiting),
        stalled_s=main.stalled_s if main is not None else 0.0,
        family=siblings.family_of(group),
        payload=_payload(main) if main is not None else "",
        members=_members(looked, group, pending, set(behind)) if has_members else (),
    )
    return row


def _front(looked: Survey, gid: str) -> int | None:
    """The furthest that any member has entered; None where nobody says it.

    As by the standings of all members, which take five times as long to work out.
    """
    known = [_entered(place) for place in looked.standings.places(gid)]
    if None in known:
        held = looked.standings.get(gid, {}).values()
        known = [one.entered for one in held if one.entered is not None]
    return max((seq for seq in known if seq is not None), default=None)


def _entered(place: Place) -> int | None:
    """What a heartbeat without anything odd says at once; None for all others."""
    if place.entered is not None:
        return place.entered
    own, seq = place.group, place.group.seq
    if own.entries or seq is None or not 0 <= seq <= places.MAX_SEQ or not 0.0 <= own.stall_s < inf:
        return None
    return seq if own.finished is None or -1 <= own.finished <= seq else None


def _ranks_text(group: GroupView) -> str:
    """Kept for all but the few largest: a group's ranks never change, and a job has thousands."""
    return _kept_text(group.ranks) if len(group.ranks) <= _LARGE else ranges.text(group.ranks)


@lru_cache(maxsize=MOST_KEPT)
def _kept_text(ranks: tuple[int, ...]) -> str:
    return ranges.text(ranks)


def _payload(op: PendingOp) -> str:
    """What one member puts in: "26 MB float"; "" where nobody told sizes."""
    entry = next((e for e in op.have.values() if e is not None and e.input_sizes), None)
    if entry is None or not entry.input_dtypes or not signature.is_plausible(entry):
        return ""
    name = entry.input_dtypes[0].removeprefix("c10::").lower()
    width = _WIDTHS.get(name)
    if width is None:
        return ""
    return f"{_bytes_text(width * _elements(entry))} {name}"


def _elements(entry: Entry) -> int:
    return sum(prod(shape) for shape in entry.input_sizes)


def _bytes_text(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 10 else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.0f} GB"


def _members(
    looked: Survey, group: GroupView, pending: list[PendingOp], behind: set[int]
) -> tuple[GroupMember, ...]:
    standings = looked.standings.get(group.gid, {})
    fronts = _first_waits(pending)
    found: list[GroupMember] = []
    for rank in group.ranks:
        held = standings.get(rank)
        front = fronts.get(rank)
        found.append(
            GroupMember(
                rank=rank,
                seq=held.entered if held is not None else None,
                op=front.op if front is not None else "",
                is_waiting=front is not None,
                is_behind=rank in behind,
            )
        )
    return tuple(found)
