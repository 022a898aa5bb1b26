"""Pending collectives: which ranks are in them, which never entered, of which nobody can say.

Alignment is by the recorder's collective_seq_id alone. A rank's report is repaired by what its
peers prove (see `bounds`), and a front is dropped when a newer report shows it finished.
"""

from __future__ import annotations

from collections.abc import Iterator

from hangwatch_agent.wire import Entry
from hangwatch_server.diagnose import bounds, standing
from hangwatch_server.diagnose.pending import later, plain, proofs, rendezvous, undumped
from hangwatch_server.diagnose.pending.ops import Form, PendingOp, first_name
from hangwatch_server.diagnose.pending.proofs import Proof
from hangwatch_server.diagnose.process import Fate
from hangwatch_server.diagnose.standing import Standing
from hangwatch_server.diagnose.survey import Survey
from hangwatch_server.model import GroupView

_UNABLE = frozenset({Fate.HELD, Fate.STOPPED, Fate.GONE})
_UNHEARD = frozenset({Fate.LATE, Fate.SILENT})


def pending(survey: Survey) -> list[PendingOp]:
    found: list[PendingOp] = []
    for gid in sorted(survey.standings.with_fronts):
        group = survey.snapshot.groups.get(gid)
        if group is None:
            continue
        plainly = plain.pending(survey, group, survey.standings.reports(gid))
        if plainly is None:
            found.extend(with_care(survey, group))
            continue
        keep_only_the_root(survey, plainly)
        found.append(plainly)
    return found


def with_care(survey: Survey, group: GroupView) -> Iterator[PendingOp]:
    """The operations of a group of which some members may be silent, dead or contradicted."""
    members = survey.standings[group.gid]
    if any(held.fronts for held in members.values()):
        yield from _of_group(survey, group, _of_members(group, members))


def _of_members(group: GroupView, standings: dict[int, Standing]) -> dict[int, Standing]:
    """Without ranks that speak of a group that they are no member of."""
    strangers = standings.keys() - set(group.ranks)
    if not strangers:
        return standings
    return {rank: held for rank, held in standings.items() if rank not in strangers}


def _of_group(
    survey: Survey, group: GroupView, members: dict[int, Standing]
) -> Iterator[PendingOp]:
    proof = proofs.of_group(survey, members)
    waiting: dict[int, dict[int, Entry | None]] = {}
    fronts: dict[int, tuple[Entry, ...]] = {}
    are_all_dumped = True
    for rank, held in members.items():
        are_all_dumped = are_all_dumped and held.group.are_entries_current
        mine = _fronts(survey, rank, held, proof)
        if mine:
            fronts[rank] = mine
            waiting.setdefault(mine[0].seq, {})[rank] = mine[0]
    later.add(survey, fronts, waiting)
    if not are_all_dumped:
        undumped.add(survey, members, waiting)
    kin = _kin(survey, members, proof) if len(waiting) > 1 else {}
    for seq in sorted(waiting):
        yield _op(survey, group, members, seq, waiting[seq], proof, kin)


def _kin(survey: Survey, members: dict[int, Standing], proof: Proof) -> dict[int, int]:
    """Members whose numbers are exact, by the first one that says the same.

    Of a call that they are not in the same holds for all of them, so one look is enough: a group
    may be waiting in many calls at once.
    """
    first: dict[tuple[int | None, int, int | None, bool], int] = {}
    kin: dict[int, int] = {}
    alive, undumped = survey.alive, survey.standings.undumped
    for rank, held in members.items():
        if held.is_exact and rank in alive and rank not in undumped:
            front = held.fronts[0].seq if held.fronts else None
            said = held.entered, held.completed, front, rank in proof.doubted
            kin[rank] = first.setdefault(said, rank)
    return kin


def _is_outdated(survey: Survey, rank: int, held: Standing) -> bool:
    """It was in ordinary motion when last heard, so what it was in then is long over."""
    is_unheard = survey.fate(rank) in _UNHEARD
    return is_unheard and held.group.stall_s < survey.settings.stable_after_s


def _fronts(survey: Survey, rank: int, held: Standing, proof: Proof) -> tuple[Entry, ...]:
    """The collectives that it is in, for all that is known; () while it may yet move."""
    if not held.fronts or held.stall_s < survey.settings.stable_after_s or rank in proof.doubted:
        return ()
    if rank not in survey.alive and _is_outdated(survey, rank, held):
        return ()
    bound = proof.bound
    if held.fronts[0].seq > bound.seq or bound.age_s >= held.entries_age_s:
        return held.fronts
    # A peer may have finished it, in a report that is newer than this one.
    return tuple(front for front in held.fronts if front.seq > bound.seq)


def _op(
    survey: Survey,
    group: GroupView,
    members: dict[int, Standing],
    seq: int,
    have: dict[int, Entry | None],
    proof: Proof,
    kin: dict[int, int],
) -> PendingOp:
    absent, unknown, holding = _blockers(survey, group, members, seq, have, proof, kin)
    found = PendingOp(
        form=Form.COLLECTIVE,
        op=first_name(have),
        gid=group.gid,
        seq=seq,
        have=have,
        absent=absent,
        unknown=unknown,
        holding=holding,
        stalled_s=_clock_s(survey, members, have),
        done=_done(members, seq),
        doubted=tuple(sorted(proof.doubted)) if proof.doubted else (),
    )
    keep_only_the_root(survey, found)
    return found


def _done(members: dict[int, Standing], seq: int) -> tuple[int, ...]:
    ranks = [rank for rank, held in members.items() if held.completed >= seq]
    return tuple(sorted(ranks)) if ranks else ()


def _blockers(
    survey: Survey,
    group: GroupView,
    members: dict[int, Standing],
    seq: int,
    have: dict[int, Entry | None],
    proof: Proof,
    kin: dict[int, int],
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """The absent, the unknown and the holding members."""
    found: dict[str, list[int]] = {"absent": [], "unknown": [], "holding": [], "unheard": []}
    known: dict[int, str] = {}
    for rank in group.ranks:
        front = have.get(rank)
        if front is not None and front.is_started is not False and rank in survey.well:
            continue  # the common case: it is inside and well
        like = kin.get(rank) if rank not in have else None
        kind = known.get(like) if like is not None else None
        if kind is None:
            kind = _arrival(survey, members.get(rank), rank, seq, have, proof)
            if like is not None:
                known[like] = kind
        if kind in found:
            found[kind].append(rank)
    holding = found["holding"]
    if found["absent"]:
        # Who came and died while waiting is a victim: the job may be torn down by now.
        holding = [rank for rank in holding if survey.fate(rank) is not Fate.GONE]
    is_explained = bool(found["absent"] or found["unknown"] or holding)
    # Who had come before it fell silent is asked for only where nobody else is missing.
    unknown = found["unknown"] if is_explained else found["unheard"]
    return tuple(found["absent"]), tuple(unknown), tuple(holding)


def _arrival(
    survey: Survey,
    held: Standing | None,
    rank: int,
    seq: int,
    have: dict[int, Entry | None],
    proof: Proof,
) -> str:
    fate = survey.fate(rank)
    if rank in have:
        if rank in survey.failed_gpus or (fate is Fate.HELD and survey.cannot_run(rank)):
            return "holding"
        return _arrived_state(fate, have[rank], proof.bound.seq >= seq)
    if held is not None and held.completed >= seq:
        return "done"
    if proof.bound.seq >= seq:
        return "holding" if fate is Fate.STOPPED else "done"
    if rank in proof.doubted:
        return "unknown"
    if held is not None and held.entered is not None and held.entered >= seq:
        is_on_older = bool(held.fronts) and held.fronts[0].seq < seq
        if fate is Fate.SILENT:
            return "unheard"
        if is_on_older and fate in _UNHEARD:
            return "unknown"
        is_blocking = is_on_older or fate in (Fate.STOPPED, Fate.GONE)
        return "holding" if is_blocking else "done"
    if held is not None and held.is_exact and fate is Fate.ALIVE:
        return "unknown" if undumped.may_be_inside(survey, rank) else "absent"
    return "unknown" if _may_have_left(survey, rank, have) else _unproven(survey, rank, fate)


def _arrived_state(fate: Fate, front: Entry | None, is_proven: bool) -> str:
    if fate in (Fate.STOPPED, Fate.GONE):
        return "holding"
    if fate is Fate.SILENT and not is_proven:
        return "unheard"  # its machine may be what stopped the collective
    if front is not None and front.is_started is False:
        return "unknown" if fate in _UNHEARD else "holding"
    return "have"


def _may_have_left(survey: Survey, rank: int, have: dict[int, Entry | None]) -> bool:
    """Whether a rank that ended well may have done its part of a call that some leave early.

    Who contributes to a gather may be done, and past destroy_process_group, before others come.
    """
    beat = survey.beat(rank)
    if beat is None or not (beat.is_destroyed or beat.process.exit_code == 0):
        return False
    op = next((entry.op for entry in have.values() if entry is not None and entry.op), "")
    return op in bounds.ROOTED


def _unproven(survey: Survey, rank: int, fate: Fate) -> str:
    """No counter tells: the process's state or its stack may."""
    beat = survey.beat(rank)
    if fate in _UNABLE or (beat is not None and beat.is_destroyed):
        return "absent"
    if fate is Fate.ALIVE and rendezvous.has_restarted(survey, rank):
        return "absent"
    if fate is Fate.ALIVE and survey.is_outside(rank) and standing.has_probe(beat):
        return "absent"
    return "unknown"


def _clock_s(survey: Survey, members: dict[int, Standing], have: dict[int, Entry | None]) -> float:
    """Age of the oldest front while no member advances.

    Members that are silent, or whose numbers contradict each other, tell of no advance.
    """
    oldest = max([members[rank].stall_s for rank in have])
    silent = survey.silent
    heard = [held.stall_s for rank, held in members.items() if rank not in silent and held.is_sane]
    return min(oldest, min(heard, default=oldest))


def keep_only_the_root(survey: Survey, op: PendingOp) -> None:
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
