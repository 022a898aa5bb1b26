"""Pending collectives: which ranks are in them, which never entered, of which nobody can say.

Alignment is by the recorder's collective_seq_id alone. A rank's report is repaired by what its
peers prove (see `bounds`), and a front is dropped when a newer report shows it finished.
"""

from __future__ import annotations

from collections.abc import Iterator

from hangwatch_agent.wire import Entry
from hangwatch_server.diagnose import bounds, standing
from hangwatch_server.diagnose.bounds import Bound
from hangwatch_server.diagnose.pending.ops import Form, PendingOp
from hangwatch_server.diagnose.process import Fate
from hangwatch_server.diagnose.standing import Standing
from hangwatch_server.diagnose.survey import Survey
from hangwatch_server.model import GroupView

_UNABLE = frozenset({Fate.HELD, Fate.STOPPED, Fate.GONE})
_UNHEARD = frozenset({Fate.LATE, Fate.SILENT})


def pending(survey: Survey) -> list[PendingOp]:
    found: list[PendingOp] = []
    for gid, members in survey.standings.items():
        group = survey.snapshot.groups.get(gid)
        if group is not None and any(held.fronts for held in members.values()):
            found.extend(_of_group(survey, group, _of_members(group, members)))
    return found


def _of_members(group: GroupView, standings: dict[int, Standing]) -> dict[int, Standing]:
    """Without ranks that speak of a group that they are no member of."""
    strangers = standings.keys() - set(group.ranks)
    if not strangers:
        return standings
    return {rank: held for rank, held in standings.items() if rank not in strangers}


def bound_of(members: dict[int, Standing]) -> Bound:
    """Highest collective of the group that every member is proven to have entered."""
    best = bounds.NOTHING
    for held in members.values():
        if held.completed < max(best.seq, 0):
            continue
        seq = _proven(held)
        if seq > best.seq or (seq == best.seq and held.entries_age_s < best.age_s):
            best = Bound(seq, held.entries_age_s)
    return best


def _proven(held: Standing) -> int:
    for entry in reversed(held.group.entries):
        if entry.is_retired and bounds.proves_arrival(entry.op):
            return entry.seq
    # NCCL's completed number alone does not say of which op; most collectives need everybody.
    return -1 if held.group.entries else held.completed


def _of_group(
    survey: Survey, group: GroupView, members: dict[int, Standing]
) -> Iterator[PendingOp]:
    bound = bound_of(members)
    waiting: dict[int, dict[int, Entry | None]] = {}
    for rank, held in members.items():
        if held.stall_s < survey.settings.stable_after_s or _is_outdated(survey, rank, held):
            continue
        fronts = [entry for entry in held.fronts if not _is_over(entry, held, bound)]
        if fronts:
            waiting.setdefault(fronts[0].seq, {})[rank] = fronts[0]
    for seq in sorted(waiting):
        yield _op(survey, group, members, seq, waiting[seq], bound)


def _is_outdated(survey: Survey, rank: int, held: Standing) -> bool:
    """It was in ordinary motion when last heard, so what it was in then is long over."""
    is_unheard = survey.fate(rank) in _UNHEARD
    return is_unheard and held.group.stall_s < survey.settings.stable_after_s


def _is_over(front: Entry, held: Standing, bound: Bound) -> bool:
    """A peer finished it, and its report is newer than the one that calls the front pending."""
    return front.seq <= bound.seq and bound.age_s < held.entries_age_s


def _op(
    survey: Survey,
    group: GroupView,
    members: dict[int, Standing],
    seq: int,
    have: dict[int, Entry | None],
    bound: Bound,
) -> PendingOp:
    absent, unknown, holding = _blockers(survey, group, members, seq, have, bound)
    op = next((entry.op for entry in have.values() if entry is not None and entry.op), "")
    found = PendingOp(
        form=Form.COLLECTIVE,
        op=op,
        gid=group.gid,
        seq=seq,
        have=have,
        absent=absent,
        unknown=unknown,
        holding=holding,
        stalled_s=_clock_s(survey, members, have),
        is_partial=any(held.completed >= seq for held in members.values()),
    )
    _keep_only_the_root(survey, found)
    if len(found.holding) == len(group.ranks) and survey.fates_are_alive(found.holding):
        found.holding = ()  # queued on every GPU: nobody is ahead of anybody
    return found


def _blockers(
    survey: Survey,
    group: GroupView,
    members: dict[int, Standing],
    seq: int,
    have: dict[int, Entry | None],
    bound: Bound,
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """The absent, the unknown and the holding members."""
    found: dict[str, list[int]] = {"absent": [], "unknown": [], "holding": []}
    for rank in group.ranks:
        front = have.get(rank)
        if front is not None and front.is_started is not False and rank in survey.well:
            continue  # the common case: it is inside and well
        kind = _arrival(survey, members.get(rank), rank, seq, have, bound)
        if kind in found:
            found[kind].append(rank)
    holding = found["holding"]
    if found["absent"]:
        # Who came and died while waiting is a victim: the job may be torn down by now.
        holding = [rank for rank in holding if survey.fate(rank) is not Fate.GONE]
    return tuple(found["absent"]), tuple(found["unknown"]), tuple(holding)


def _arrival(
    survey: Survey,
    held: Standing | None,
    rank: int,
    seq: int,
    have: dict[int, Entry | None],
    bound: Bound,
) -> str:
    fate = survey.fate(rank)
    if rank in have:
        if rank in survey.failed_gpus:
            return "holding"
        return _arrived_state(fate, have[rank], bound.seq >= seq)
    if held is not None and held.completed >= seq:
        return "done"
    if bound.seq >= seq:
        return "holding" if fate is Fate.STOPPED else "done"
    if held is not None and held.entered is not None and held.entered >= seq:
        is_on_older = bool(held.fronts) and held.fronts[0].seq < seq
        if is_on_older and fate in _UNHEARD:
            return "unknown"
        is_blocking = is_on_older or fate in (Fate.STOPPED, Fate.GONE)
        return "holding" if is_blocking else "done"
    if held is not None and held.is_exact and fate is Fate.ALIVE:
        return "absent"
    return _unproven(survey, rank, fate)


def _arrived_state(fate: Fate, front: Entry | None, is_proven: bool) -> str:
    if fate in (Fate.STOPPED, Fate.GONE):
        return "holding"
    if fate is Fate.SILENT and not is_proven:
        return "unknown"  # its machine may be what stopped the collective
    if front is not None and front.is_started is False:
        return "unknown" if fate in _UNHEARD else "holding"
    return "have"


def _unproven(survey: Survey, rank: int, fate: Fate) -> str:
    """No counter tells: the process's state or its stack may."""
    beat = survey.beat(rank)
    if fate in _UNABLE or (beat is not None and beat.is_destroyed):
        return "absent"
    if fate is Fate.ALIVE and survey.is_outside(rank) and standing.has_probe(beat):
        return "absent"
    return "unknown"


def _clock_s(survey: Survey, members: dict[int, Standing], have: dict[int, Entry | None]) -> float:
    """Age of the oldest front while no member advances; silent members do not count."""
    oldest = max([members[rank].stall_s for rank in have])
    heard = members.keys() - survey.silent if survey.silent else members.keys()
    newest = min([members[rank].stall_s for rank in heard], default=oldest)
    return min(oldest, newest)


def _keep_only_the_root(survey: Survey, op: PendingOp) -> None:
    """Receivers of a broadcast or scatter wait for its root alone while the root is not there."""
    if op.op not in bounds.ROOT_SENDS:
        return
    root = root_of(survey, op)
    if root in op.absent:
        op.absent, op.unknown = (root,), ()
    elif root in op.unknown:
        op.absent, op.unknown = (), (root,)


def root_of(survey: Survey, op: PendingOp) -> int | None:
    """The root by its members' wrapped calls; None when they do not say or do not agree."""
    roots = {
        call.root
        for rank in op.have
        if (beat := survey.beat(rank)) is not None
        for call in beat.calls
        if call.gid == op.gid and call.op == op.op and call.root is not None
    }
    return roots.pop() if len(roots) == 1 else None
