"""Pending collectives: which ranks are in them, which never entered, of which nobody can say.

Alignment is by the recorder's collective_seq_id alone. A rank's report is repaired by what its
peers prove (see `bounds`), and a front is dropped when a newer report shows it finished.
"""

from __future__ import annotations

from collections.abc import Iterator

from hangwatch_agent.wire import Entry
from hangwatch_server import op_names
from hangwatch_server.diagnose.pending import arrivals, later, plain, proofs, undumped
from hangwatch_server.diagnose.pending.arrivals import UNHEARD, Members
from hangwatch_server.diagnose.pending.ops import Form, PendingOp, first_name
from hangwatch_server.diagnose.pending.proofs import Proof
from hangwatch_server.diagnose.standing import Standing
from hangwatch_server.diagnose.survey import Survey
from hangwatch_server.model import GroupView


def pending(survey: Survey) -> list[PendingOp]:
    found: list[PendingOp] = []
    for gid in sorted(survey.standings.with_fronts):
        group = survey.snapshot.groups.get(gid)
        if group is None:
            continue
        plainly = plain.pending(survey, group, survey.standings.places(gid))
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
    asked = arrivals.members(survey, group, members, proof, calls=len(waiting))
    for seq in sorted(waiting):
        yield _op(asked, seq, waiting[seq])


def _is_outdated(survey: Survey, rank: int, held: Standing) -> bool:
    """It was in ordinary motion when last heard, so what it was in then is long over."""
    is_unheard = survey.fate(rank) in UNHEARD
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


def _op(members: Members, seq: int, have: dict[int, Entry | None]) -> PendingOp:
    absent, unknown, holding, unplaced = arrivals.blockers(members, seq, have)
    doubted = members.proof.doubted
    found = PendingOp(
        form=Form.COLLECTIVE,
        op=first_name(have),
        gid=members.group.gid,
        seq=seq,
        have=have,
        absent=absent,
        unknown=unknown,
        holding=holding,
        unplaced=unplaced,
        stalled_s=arrivals.clock_s(members, have),
        done=arrivals.done(members, seq),
        doubted=tuple(sorted(doubted)) if doubted else (),
    )
    keep_only_the_root(members.survey, found)
    return found


def keep_only_the_root(survey: Survey, op: PendingOp) -> None:
    """Receivers of a broadcast or scatter wait for its root alone while the root is not there."""
    if op.op not in op_names.ROOT_SENDS:
        return
    root = root_of(survey, op)
    if root in op.absent:
        op.absent, op.unknown, op.is_agreed = (root,), (), False
    elif root in op.unknown:
        op.absent, op.unknown, op.is_agreed = (), (root,), False


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
