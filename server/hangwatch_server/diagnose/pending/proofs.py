"""What the members of a group prove about each other, and whose word cannot be true.

A collective that needs everybody, once finished anywhere, was entered by all: a lower bound for the
members that are silent. Not so where a member is dead: what it had not entered was aborted, not
finished. Members that stand still and contradict that bound cannot be right together with those who
claim it; the fewer of the two are doubted, and a doubted member is neither blamed nor believed.
"""

from __future__ import annotations

from typing import NamedTuple

from hangwatch_server import op_names
from hangwatch_server.diagnose import bounds
from hangwatch_server.diagnose.bounds import Bound
from hangwatch_server.diagnose.process import Fate
from hangwatch_server.diagnose.standing import Standing
from hangwatch_server.diagnose.survey import Survey

FAR_AHEAD = 1000  # calls; the root of broadcasts may run ahead of the others, but not so far
_NOBODY: frozenset[int] = frozenset()


class Proof(NamedTuple):
    bound: Bound
    doubted: frozenset[int]


def of_group(survey: Survey, members: dict[int, Standing]) -> Proof:
    bound = _bound(survey, members)
    claimed, lowest, doubted = _claimed(members)
    limit = max(bound.seq, claimed - FAR_AHEAD)
    behind = _behind(survey, members, limit) if lowest < limit else ()
    if behind:
        ahead = [r for r, held in members.items() if _limit_of(held) >= limit]
        doubted = doubted.union(behind if len(behind) <= len(ahead) else ahead)
        bound = _bound(survey, {r: held for r, held in members.items() if r not in doubted})
    return Proof(bound, doubted)


def bound_of(survey: Survey, gid: str) -> Bound:
    """The bound of a group that is reported; worked out once, since many silent ranks ask."""
    known = survey.bounds.get(gid)
    if known is None:
        known = survey.bounds[gid] = of_group(survey, survey.standings[gid]).bound
    return known


def _claimed(members: dict[int, Standing]) -> tuple[int, int, frozenset[int]]:
    """The most that anybody claims to be past, the least that one has entered, and the insane."""
    claimed, lowest, insane = -1, 2**63, _NOBODY
    for rank, held in members.items():
        claims = held.fronts[0].seq - 1 if held.fronts else held.completed
        if claims > claimed:
            claimed = claims
        entered = held.entered
        if entered is not None and entered < lowest:
            lowest = entered
        if not held.is_sane:
            insane |= {rank}
    return claimed, lowest, insane


def _bound(survey: Survey, members: dict[int, Standing]) -> Bound:
    """Highest collective of the group that every member is proven to have entered."""
    seq, age_s = bounds.NOTHING
    for held in members.values():
        completed = held.completed
        if completed < seq or completed < 0:
            continue
        if completed > seq:
            proven = _proven(held)
            is_by_number = not held.entries
            if proven > seq and not (is_by_number and _is_left_early(members, proven)):
                seq, age_s = proven, held.entries_age_s
        if completed == seq and held.entries_age_s < age_s:
            age_s = held.entries_age_s
    if seq >= 0 and survey.gone:
        dead = survey.gone.intersection(members)
        entered = [members[rank].entered for rank in dead]
        seq = min([seq, *(-1 if number is None else number for number in entered)])
    return Bound(seq, age_s)


def _proven(held: Standing) -> int:
    for entry in reversed(held.entries):
        if entry.is_retired and op_names.proves_arrival(entry.op):
            return entry.seq
    # NCCL's completed number alone does not say of which op; most collectives need everybody.
    return -1 if held.entries else held.completed


def _is_left_early(members: dict[int, Standing], seq: int) -> bool:
    """Whether a member's entry shows a call that some may leave before all have come."""
    return any(
        entry.seq == seq and entry.op and not op_names.proves_arrival(entry.op)
        for held in members.values()
        for entry in held.entries
    )


def _claims(held: Standing) -> int:
    """The newest collective that this member says to be past."""
    return held.fronts[0].seq - 1 if held.fronts else held.completed


def _limit_of(held: Standing) -> int:
    return max(_proven(held), _claims(held) - FAR_AHEAD)


def _behind(survey: Survey, members: dict[int, Standing], limit: int) -> set[int]:
    """Members that stand still, for sure, before what others claim everybody to have entered."""
    still_s = survey.settings.hard_after_s
    return {
        rank
        for rank, held in members.items()
        if held.entered is not None
        and held.entered < limit
        and held.is_exact
        and held.stall_s >= still_s
        and survey.fate(rank) is Fate.ALIVE
    }
