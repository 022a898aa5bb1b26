"""Who is out of step in a cycle of waits: a rank that made fewer or more calls than its peers.

Ranks that wait in one call have come to the same place of their program, so they have made as many
calls on groups of each mesh dimension. One that has not either left a call out, made one twice, or
came to this call out of order; the rest of the cycle only follows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from hangwatch_server.diagnose.calls import shift, siblings
from hangwatch_server.diagnose.calls.alignment import MOST
from hangwatch_server.diagnose.pending.ops import Form, PendingOp
from hangwatch_server.diagnose.survey import Survey
from hangwatch_server.model import Shift

FEWEST = 3  # ranks of which two thirds make a majority
MOST_ASKED = 4096  # ranks of one cycle
MOST_WAYS = 64  # different places in the program; more are no training in step


def blamed(survey: Survey, ops: Sequence[PendingOp], cycle: Sequence[int]) -> list[int]:
    """The ranks of a cycle that are out of step; [] where nobody can be told from the rest."""
    odd = {rank for rank in out_of_step(survey, ops) if rank in cycle} or _astray(survey, cycle)
    if not odd:
        odd = {found.rank for op in ops if (found := _alone(survey, op)) is not None}
    return sorted(odd.intersection(cycle))


def _astray(survey: Survey, cycle: Sequence[int]) -> set[int]:
    """Ranks that have gone another way through the program than almost all others.

    Of two ranks in step one is nowhere ahead of the other: it has made as many calls or fewer on
    every dimension. Ranks that made equally many calls are looked at as one.
    """
    alike: dict[tuple[tuple[str, int], ...], list[int]] = {}
    for rank in cycle[:MOST_ASKED]:
        alike.setdefault(tuple(sorted(_progress(survey, rank, "").items())), []).append(rank)
    if len(alike) > MOST_WAYS:
        return set()
    odd: set[int] = set()
    for way, ranks in alike.items():
        apart = sum(len(others) for other, others in alike.items() if _have_parted(way, other))
        if 3 * apart >= 2 * (len(cycle[:MOST_ASKED]) - len(ranks)) and apart >= FEWEST * len(ranks):
            odd.update(ranks)
    return odd


def _have_parted(one: tuple[tuple[str, int], ...], other: tuple[tuple[str, int], ...]) -> bool:
    """Whether each is ahead of the other somewhere."""
    theirs = dict(other)
    ahead = [made - theirs[stem] for stem, made in one if stem in theirs]
    return bool(ahead) and min(ahead) < 0 < max(ahead)


def _alone(survey: Survey, op: PendingOp) -> Shift | None:
    """One that waits with few others in a call that its record does not lead to."""
    group = survey.snapshot.groups.get(op.gid)
    if group is None or FEWEST * len(op.have) > len(group.ranks):
        return None
    return shift.of(survey, op, op.have, foretells=True)


def out_of_step(survey: Survey, ops: Iterable[PendingOp]) -> dict[int, tuple[str, int]]:
    """Per odd rank: the dimension, and how many calls more than its peers it has made there."""
    found: dict[int, tuple[str, int]] = {}
    for op in sorted(ops, key=lambda one: one.sort_key):
        if op.form is Form.COLLECTIVE and len(op.have) >= FEWEST:
            found.update(_of_members(survey, op))
    return found


def _of_members(survey: Survey, op: PendingOp) -> dict[int, tuple[str, int]]:
    counts: dict[str, dict[int, int]] = {}
    for rank in op.have:
        for stem, number in _progress(survey, rank, op.gid).items():
            counts.setdefault(stem, {})[rank] = number
    found: dict[int, tuple[str, int]] = {}
    for stem in sorted(counts):
        by_rank = counts[stem]
        usual, number = Counter(by_rank.values()).most_common(1)[0]
        if len(by_rank) < FEWEST or 3 * number < 2 * len(by_rank):
            continue
        for rank, made in by_rank.items():
            if 0 < abs(made - usual) <= MOST:
                found[rank] = stem, made - usual
    return found


def _progress(survey: Survey, rank: int, apart_from: str) -> dict[str, int]:
    """Calls entered per mesh dimension, where this rank has one group of it and they are known."""
    beat = survey.beat(rank)
    made: dict[str, list[int | None]] = {}
    for group in beat.groups if beat is not None else ():
        view = survey.snapshot.groups.get(group.gid)
        held = survey.standings.get(group.gid, {}).get(rank)
        if view is not None and group.gid != apart_from and held is not None:
            stem = siblings.stem_of(view)
            made.setdefault(stem, []).append(held.entered if held.is_exact else None)
    return {
        stem: numbers[0]
        for stem, numbers in made.items()
        if stem and len(numbers) == 1 and numbers[0] is not None
    }
