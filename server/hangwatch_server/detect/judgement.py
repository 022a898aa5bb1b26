"""The judgement of a stall: expected, slow, suspected, hung, or not to be told.

It decides from what the other modules observed; it observes nothing itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hangwatch_server import ranges
from hangwatch_server.detect import (
    frozen,
    hard,
    lifecycle,
    limits,
    phases,
    startup,
    stillness,
    wishes,
)
from hangwatch_server.detect.frozen import Motion
from hangwatch_server.detect.memory import Memory, Stall
from hangwatch_server.detect.phases import Phase
from hangwatch_server.detect.sampling import Bound
from hangwatch_server.detect.settings import DetectSettings
from hangwatch_server.model import Activity, Finding, Kind, Limits, Link, RankView, Snapshot, State

Judgement = tuple[State, str, bool | None]
# Inside these a rank is idle and its stack stands, whoever is to blame.
_NOWHERE_ELSE = frozenset(
    {Activity.COLLECTIVE, Activity.GPU, Activity.RENDEZVOUS, Activity.UNKNOWN}
)
_BY_CHANCE = "too few samples look stuck to rule out chance"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Everything that a judgement rests on."""

    memory: Memory
    stall: Stall
    snapshot: Snapshot
    finding: Finding
    limits: Limits
    stalled_s: float
    settings: DetectSettings
    bound: Bound | None = None  # where the finding rests on samples of stacks alone

    current: Phase | None = None  # the culprits' phase, if they are in one

    def views(self) -> list[RankView]:
        """The ranks that decide."""
        return deciding(self.snapshot, self.finding, self.settings)

    def motions(self) -> list[Motion]:
        now_s = self.snapshot.taken_s
        return [frozen.motion(view, self.stall, now_s, self.settings) for view in self.views()]


def deciding(snapshot: Snapshot, finding: Finding, s: DetectSettings) -> list[RankView]:
    """The views of the ranks whose motion and phase decide."""
    ranks = wishes.candidates(snapshot, finding, s)
    return [snapshot.ranks[rank] for rank in ranks if rank in snapshot.ranks]


def phase(
    snapshot: Snapshot, finding: Finding, stalled_s: float, s: DetectSettings
) -> Phase | None:
    """The phase of a culprit that is allowed to last longest; None when no culprit is in one.

    Where nobody waits, that of any rank.
    """
    if not finding.culprits and finding.kind is not Kind.NO_PROGRESS:
        return None
    views = deciding(snapshot, finding, s)
    found = (phases.of(view, stalled_s, s) for view in views)
    return max(
        (phase for phase in found if phase is not None),
        key=lambda phase: phase.limit_s - phase.spent_s,
        default=None,
    )


def judge(case: Case) -> Judgement:
    """State, reason in words, and whether a culprit is frozen (None: not known)."""
    if hard.is_proven(case.memory, case.snapshot, case.finding, case.settings):
        return State.HUNG, f"{hard.words(case.finding.kind)}, in two samples", None
    not_heard = _unheard(case)
    if not_heard is not None:
        return not_heard
    is_frozen = _is_frozen(case.motions())
    if case.stall.is_hung:
        return State.HUNG, "no progress since the hang was confirmed", is_frozen
    if case.stalled_s < case.limits.suspect_after_s:
        return _calm(case)
    judged = _BY_KIND.get(case.finding.kind, _held_up)(case)
    return (*judged, is_frozen)


def _calm(case: Case) -> Judgement:
    calm = lifecycle.blind(case.snapshot)
    calm = calm or lifecycle.calm(case.memory, case.snapshot, case.settings)
    return (*calm, None)


def _is_frozen(motions: list[Motion]) -> bool | None:
    if Motion.FROZEN in motions:
        return True
    return False if Motion.WORKING in motions else None


def _unheard(case: Case) -> Judgement | None:
    """Missing data is unknown, and hung only where others wait for a node that stays silent."""
    ranks = case.snapshot.ranks
    waiting = [ranks[r] for r in ranges.parse(case.finding.waiting) if r in ranks]
    if waiting and all(view.link is Link.LOST for view in waiting):
        return State.UNKNOWN, "the waiting ranks are not heard", None
    if case.stalled_s < case.limits.suspect_after_s or not case.finding.culprits:
        return None
    lost = [v for v in case.views() if v.node and v.link is Link.LOST]
    unseen = [view.rank for view in case.views() if view.beat is None and view not in lost]
    if unseen and case.finding.kind is not Kind.INCOMPLETE_RENDEZVOUS:
        return (
            State.UNKNOWN,
            f"{ranges.agreeing(unseen, 'is', 'are')} waited for, but not reported",
            None,
        )
    return _lost(case, lost) if lost and len(lost) == len(case.views()) else None


def _lost(case: Case, lost: list[RankView]) -> Judgement:
    """After a minute the silent node is the cause, if we still hear half of all nodes.

    A minute in which we looked: after a break of our own every node has been silent for as long.
    And one in which the others waited: an agent may be lost long before its ranks are late once.
    """
    nodes = {v.node for v in case.snapshot.ranks.values() if v.node}
    live = {v.node for v in case.snapshot.ranks.values() if v.node and v.link is Link.LIVE}
    silent = sorted({view.node for view in lost})
    is_one = len(silent) == 1
    who = f"node{'' if is_one else 's'} {', '.join(silent[:4])}"
    is_ours = len(live) * 2 < len(nodes)
    looked_s = case.snapshot.taken_s - case.memory.awake_s
    silent_s = min(view.age_s for view in lost)
    if looked_s < silent_s and case.memory.has_looked_away:
        silent_s = looked_s
    if is_ours or min(silent_s, case.stalled_s) < case.settings.node_lost_s:
        return State.UNKNOWN, f"{who} {'is' if is_one else 'are'} waited for and not heard", None
    since = (
        "has been silent while others wait for its"
        if is_one
        else ("have been silent while others wait for their")
    )
    return State.HUNG, f"{who} {since} ranks", None


def _held_up(case: Case) -> tuple[State, str]:
    """Somebody is waited for who is heard: in a phase, frozen, working, or not yet to be told."""
    motions = case.motions()
    if case.current is not None:
        expected = _in_phase(case, case.current, Motion.FROZEN in motions)
        if expected is not None:
            return expected
    hang_s = _hang_after_s(case)
    if case.stalled_s >= case.limits.confirm_after_s:
        doubt = _doubt(case, motions, hang_s)
        if doubt is not None:
            return State.SUSPECTED, doubt
        if Motion.FROZEN in motions and not _may_wait_for_another(case, motions):
            return State.HUNG, f"a culprit is frozen, and nothing moved for {case.stalled_s:.0f} s"
    if case.stalled_s >= hang_s:
        return State.HUNG, f"the stall has lasted {hang_s:.0f} s"
    if Motion.WORKING in motions and case.stalled_s >= case.limits.confirm_after_s:
        return State.SLOW, "a culprit works, but holds the others up"
    return State.SUSPECTED, f"no progress for {case.limits.suspect_after_s:.0f} s"


def _doubt(case: Case, motions: list[Motion], hang_s: float) -> str | None:
    """Why a frozen culprit is not called a hang yet; None when nothing speaks against it."""
    s = case.settings
    if case.views() and all(view.link is Link.LATE for view in case.views()):
        return "the agent of the culprit is late: what it did since is not known yet"
    if case.bound is not None and not case.bound.is_met and not _has_stopped(case):
        return _BY_CHANCE
    if case.finding.is_presumed and case.stalled_s < hang_s and not _is_seen_outside(case):
        return "nothing tells whether the rank that may be waited for waits itself"
    frozen_views = [
        view for view, how in zip(case.views(), motions, strict=True) if how is Motion.FROZEN
    ]
    storage_s = min(s.storage_frozen_s, hang_s)
    if (
        frozen_views
        and case.stalled_s < storage_s
        and all(map(frozen.waits_for_storage, frozen_views))
    ):
        return f"the culprit waits for storage (D state), which may take {storage_s:.0f} s"
    return None


def _may_wait_for_another(case: Case, motions: list[Motion]) -> bool:
    """As ranks do that poll a file while one of them prepares the data, all away from the others.

    Not for ever: see `phase_frozen_s`. A cycle has no such order, and who is stopped waits for
    nobody.
    """
    if case.finding.kind is not Kind.MISSING_RANKS or _has_stopped(case):
        return False
    is_young = case.stalled_s < max(case.settings.phase_frozen_s, case.limits.confirm_after_s)
    return is_young and Motion.WORKING in motions


def _is_seen_outside(case: Case) -> bool:
    """Whether a stack shows one of those who decide at something else than a wait for others."""
    stacks = (view.stack for view in case.views() if view.stack is not None)
    return any(stack.activity not in _NOWHERE_ELSE for stack in stacks)


def _has_stopped(case: Case) -> bool:
    return any(frozen.has_stopped(view, case.stall, case.settings) for view in case.views())


def _hang_after_s(case: Case) -> float:
    hang_s = max(case.settings.hang_after_s, case.limits.confirm_after_s)
    latest_s = limits.latest(case.snapshot, case.finding, case.settings)
    timeout_s = limits.latest_timeout_s(case.snapshot, case.finding)
    if latest_s is None or timeout_s is None:
        return hang_s
    # A short timeout leaves no such reserve: a rank that works has half of it in any case.
    return min(hang_s, max(latest_s, timeout_s / 2))


def _in_phase(case: Case, current: Phase, is_frozen: bool) -> tuple[State, str] | None:
    """An expected wait while the phase may last; None when the ordinary rules apply again."""
    if current.spent_s >= current.limit_s:
        return None
    looks_dead = is_frozen and not current.is_announced
    patience_s = max(case.settings.phase_frozen_s, case.limits.confirm_after_s)
    if looks_dead and case.stalled_s >= patience_s:
        return None
    latest_s = limits.latest(case.snapshot, case.finding, case.settings)
    if latest_s is not None and case.stalled_s >= latest_s:
        return State.SUSPECTED, f"phase {current.name} goes on, and the group's own timeout is near"
    how = "announced" if current.is_announced else "recognised"
    return State.EXPECTED_WAIT, f"{how} phase {current.name}, up to {current.limit_s:.0f} s"


def _all_entered(case: Case) -> tuple[State, str]:
    """All members are inside the collective: a slow network looks the same, so it takes longer."""
    s = case.settings
    frozen_s = max(s.stalled_collective_s, case.limits.confirm_after_s)
    if case.finding.culprits:
        return _held_up(case)
    hang_s = _hang_after_s(case)
    if case.bound is not None and not case.bound.is_met:
        return State.SUSPECTED, _BY_CHANCE
    if Motion.FROZEN in case.motions() and case.stalled_s >= min(frozen_s, hang_s):
        lasts = f"and it has lasted {case.stalled_s:.0f} s"
        return State.HUNG, f"nobody is known to be missing from the collective, {lasts}"
    if case.stalled_s >= hang_s:
        return State.HUNG, f"the collective has not finished for {case.stalled_s:.0f} s"
    return State.SUSPECTED, "nobody is known to be missing from the collective, and none leaves it"


def _no_progress(case: Case) -> tuple[State, str]:
    """Nobody waits in a collective: information, until the kernel says that nothing will move.

    A job that waits for work in a queue looks the same for an hour, but its threads run.
    """
    s = case.settings
    current = case.current
    if current is not None and current.spent_s < current.limit_s:
        return State.EXPECTED_WAIT, f"no collective runs; phase {current.name}"
    if case.stalled_s < max(s.no_progress_after_s, case.limits.suspect_after_s):
        return _calm(case)[:2]
    still_s = min(stillness.still_s(case.stall, case.snapshot), case.stalled_s)
    if still_s >= _still_hang_s(case):
        return State.HUNG, f"the kernel has run no rank's main thread for {still_s:.0f} s"
    return State.UNKNOWN, "no rank is in a collective, and none has called one lately"


def _still_hang_s(case: Case) -> float:
    timeout_s = limits.shortest_timeout_s(case.snapshot)
    most_s = case.settings.no_progress_hung_s
    return most_s if timeout_s is None else min(most_s, timeout_s)


def _rendezvous(case: Case) -> tuple[State, str]:
    if case.current is not None:
        expected = _in_phase(case, case.current, Motion.FROZEN in case.motions())
        if expected is not None:
            return expected
    culprits = [
        case.snapshot.ranks[c.rank] for c in case.finding.culprits if c.rank in case.snapshot.ranks
    ]
    return startup.judge(
        culprits, case.motions(), case.stalled_s, case.snapshot.world_size, case.settings
    )


_BY_KIND: dict[Kind, Callable[[Case], tuple[State, str]]] = {
    Kind.INCOMPLETE_RENDEZVOUS: _rendezvous,
    Kind.STALLED_COLLECTIVE: _all_entered,
    Kind.NO_PROGRESS: _no_progress,
}
