"""Pending waits of a job without any probe: what stacks alone tell of its ranks.

No counters exist, so nothing says which call of which group a rank waits in: all that wait are
taken as one wait for all that do not. That names a rank outside of every collective while others
stand inside; it cannot tell a cycle, or calls that differ, from a call that does not finish, and
then blames nobody.

A stack is a moment. It stands for now only where the kernel has not run the main thread since
(exact), or where several looks in a row show the same (then `detect` weighs the chance of that).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from hangwatch_agent.wire import Depth, Entry
from hangwatch_server import ranges
from hangwatch_server.diagnose import survey as surveys
from hangwatch_server.diagnose.pending import rendezvous
from hangwatch_server.diagnose.pending.ops import Form, PendingOp
from hangwatch_server.diagnose.process import Fate
from hangwatch_server.diagnose.survey import Survey
from hangwatch_server.model import Activity, RankView, StackFacts

_CLOCK_SLACK_S = 1.5  # facts of a process and its stack are not taken at the same moment
_MAX_PLACES = 4
_INSIDE = frozenset({Activity.COLLECTIVE, Activity.GPU, Activity.RENDEZVOUS})


@dataclass(slots=True)
class _Sorted:
    """Ranks by what their stacks show, with how long each has waited."""

    waits: dict[int, float] = field(default_factory=dict)
    stacks: dict[int, StackFacts] = field(default_factory=dict)  # of all that have one
    outside: list[int] = field(default_factory=list)
    unable: list[int] = field(default_factory=list)  # gone, stopped, or held by the kernel
    unknown: list[int] = field(default_factory=list)
    opaque: list[int] = field(default_factory=list)


def is_bare(survey: Survey) -> bool:
    """Whether nothing is known of this job's calls: no groups, and no rank with a probe."""
    if survey.standings:
        return False  # somebody has told of a group
    beats = [view.beat for view in survey.snapshot.ranks.values() if view.beat is not None]
    return bool(beats) and not any(
        beat.depth is Depth.PROBE or beat.waits or beat.groups for beat in beats
    )


def pending(survey: Survey) -> list[PendingOp]:
    """At most one wait: of those inside for those that are not."""
    if survey.snapshot.world_size < 2 or not is_bare(survey):
        return []
    found = _Sorted()
    for rank, view in survey.snapshot.ranks.items():
        _sort(survey, found, rank, view)
    _settle_opaque(survey, found)
    if not found.waits or min(found.waits.values()) < survey.settings.stable_after_s:
        return []
    return [_op(survey, found)]


def _sort(survey: Survey, found: _Sorted, rank: int, view: RankView) -> None:
    fate = survey.fate(rank)
    stack = survey.stack(rank)
    if fate in (Fate.GONE, Fate.STOPPED):
        found.unable.append(rank)
        return
    if stack is not None:
        found.stacks[rank] = stack
    if fate in (Fate.SILENT, Fate.LATE) or stack is None:
        found.unknown.append(rank)
    elif stack.is_opaque:
        found.opaque.append(rank)
    elif stack.activity in _INSIDE or surveys.waits_in_ddp(stack):
        _wait(found, rank, view, stack)
    elif fate is Fate.HELD:
        found.unable.append(rank)
    else:
        found.outside.append(rank)


def _wait(found: _Sorted, rank: int, view: RankView, stack: StackFacts) -> None:
    """A rank inside counts as waiting while its stack stands for now."""
    waited_s = waited(view, stack)
    if waited_s is None:
        found.unknown.append(rank)
    else:
        found.waits[rank] = waited_s


def waited(view: RankView, stack: StackFacts) -> float | None:
    """For how long the rank has stood where its stack shows it; None when it may have left since.

    By the kernel's count where the thread has not been run since; else, since some waits spin or
    poll, from the first to the last of several equal looks and on to now.
    """
    still_s = view.beat.process.main_still_s if view.beat is not None else None
    if still_s is not None and stack.age_s <= still_s + view.age_s + _CLOCK_SLACK_S:
        return still_s + view.age_s
    if stack.same_leaf_captures > 1:
        return stack.same_leaf_s + stack.age_s
    return None


def _settle_opaque(survey: Survey, found: _Sorted) -> None:
    """A wait() and a lock look alike: several ranks at one line are in a wait().

    One alone at its line counts as outside while others are inside, and says nothing otherwise.
    """
    places = Counter(found.stacks[rank].where for rank in found.opaque)
    for rank in sorted(found.opaque, key=lambda rank: -places[found.stacks[rank].where]):
        stack = found.stacks[rank]
        if places[stack.where] > 1:
            _wait(found, rank, survey.snapshot.ranks[rank], stack)
        elif found.waits:
            found.outside.append(rank)
        else:
            found.unknown.append(rank)


def _op(survey: Survey, found: _Sorted) -> PendingOp:
    stalled_s = min(found.waits.values())
    absent, unknown = _blockers(survey, found, stalled_s)
    have: dict[int, Entry | None] = dict.fromkeys(sorted(found.waits))
    stacks = [found.stacks[rank] for rank in have]
    is_start = all(stack.activity is Activity.RENDEZVOUS for stack in stacks)
    name = Counter(_call(stack) for stack in stacks).most_common(1)[0][0]
    return PendingOp(
        form=Form.RENDEZVOUS if is_start else Form.SEEN,
        op=name,
        have=have,
        absent=tuple(sorted(absent)),
        unknown=tuple(sorted(unknown)),
        stalled_s=stalled_s,
        detail="" if is_start else _places(found, have),
    )


def _blockers(survey: Survey, found: _Sorted, stalled_s: float) -> tuple[list[int], list[int]]:
    """The absent and the unknown.

    A look at a rank outside counts if it was taken while the others waited already: had the rank
    come since, they would have gone on. Where some that are outside stand still, those that move
    may belong to groups that are well.
    """
    outside = [rank for rank in found.outside if _is_of_stall(found.stacks[rank], stalled_s)]
    old = [rank for rank in found.outside if rank not in outside]
    still = [rank for rank in outside if _stands(survey, rank, stalled_s)]
    if still or found.unable:
        moving = [rank for rank in outside if rank not in still]
        return found.unable + still, found.unknown + old + moving
    return outside, found.unknown + old


def _is_of_stall(stack: StackFacts, stalled_s: float) -> bool:
    return stack.age_s <= stalled_s + _CLOCK_SLACK_S


def _stands(survey: Survey, rank: int, stalled_s: float) -> bool:
    view = survey.snapshot.ranks[rank]
    stack = survey.stack(rank)
    waited_s = waited(view, stack) if stack is not None else None
    return waited_s is not None and waited_s + _CLOCK_SLACK_S >= min(
        stalled_s, survey.settings.hard_after_s
    )


def _call(stack: StackFacts) -> str:
    if stack.activity is Activity.RENDEZVOUS:
        return stack.op or rendezvous.INIT
    if stack.activity is Activity.GPU:
        return "a wait for the GPU"
    return stack.op or "a wait for a collective"


def _places(found: _Sorted, ranks: Iterable[int]) -> str:
    """`all_reduce at train.py:61 in step (0-2), barrier at train.py:70 in step (3)`."""
    by_place: dict[str, list[int]] = {}
    for rank in ranks:
        stack = found.stacks[rank]
        by_place.setdefault(f"{_call(stack)} at {stack.where}", []).append(rank)
    shown = sorted(by_place.items(), key=lambda item: (-len(item[1]), item[1]))
    texts = [f"{place} ({ranges.text(members)})" for place, members in shown[:_MAX_PLACES]]
    more = len(shown) - len(texts)
    return ", ".join(texts) + (f" and {more} more places" if more else "")
