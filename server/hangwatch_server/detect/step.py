"""One step of detection: from a snapshot and its finding to a state, with reasons and wishes."""

from __future__ import annotations

from dataclasses import replace

from hangwatch_server.detect import frozen, hard, judgement, lifecycle, limits, progress, wishes
from hangwatch_server.detect.decision import Decision, Wish
from hangwatch_server.detect.judgement import Case
from hangwatch_server.detect.memory import Memory
from hangwatch_server.detect.settings import DEFAULT, DetectSettings
from hangwatch_server.model import Finding, Kind, Limits, Link, Snapshot, State

# Before this a wait is everyday: no traces are kept of it.
_TRACE_AFTER_S = 2.0
# A launcher that restarts its ranks lets all of them go first; this is longer than it then takes.
_OVER_AFTER_S = 30.0


def step(
    memory: Memory, snapshot: Snapshot, finding: Finding, settings: DetectSettings = DEFAULT
) -> tuple[Memory, Decision]:
    """Judge the job as of `snapshot.taken_s`; `finding` is what `diagnose` says of it.

    1. Move the progress clock and the sight of hard evidence.
    2. An ended job needs no more.
    3. A job in which nobody is held up is calm, or not heard.
    4. Else trace the ranks that decide, judge them, and say which captures would tell more.
    """
    memory = progress.observe(memory, snapshot, finding, settings)
    memory = hard.observe(memory, snapshot, finding)
    bounds = limits.limits(memory, snapshot, finding, settings)
    memory = _observe_end(memory, snapshot)
    ended = lifecycle.ended(snapshot)
    if ended is not None:
        return memory, _decision(memory, snapshot, bounds, *ended)
    if finding.kind is Kind.NONE or memory.stall is None:
        calm = lifecycle.blind(snapshot) or lifecycle.calm(memory, snapshot, settings)
        return memory, _decision(memory, snapshot, bounds, *calm)
    return _stalled(memory, snapshot, finding, bounds, settings)


def _observe_end(memory: Memory, snapshot: Snapshot) -> Memory:
    if not lifecycle.is_over(snapshot):
        return replace(memory, over_since_s=None)
    if memory.over_since_s is not None:
        return memory
    return replace(memory, over_since_s=snapshot.taken_s)


def _stalled(
    memory: Memory, snapshot: Snapshot, finding: Finding, bounds: Limits, settings: DetectSettings
) -> tuple[Memory, Decision]:
    assert memory.stall is not None  # step() looked
    age_s = progress.stalled_s(memory, snapshot.taken_s)
    stall = memory.stall
    if age_s >= _TRACE_AFTER_S:
        stall = frozen.observe(stall, snapshot, wishes.candidates(finding, settings))
    case = Case(
        memory=replace(memory, stall=stall),
        stall=stall,
        snapshot=snapshot,
        finding=finding,
        limits=bounds,
        stalled_s=age_s,
        settings=settings,
    )
    state, reason, is_frozen = judgement.judge(case)
    phase = judgement.phase(case)
    stall = replace(stall, is_hung=stall.is_hung or state is State.HUNG)
    stall = replace(stall, phase=phase.name if phase else stall.phase)
    stall, wanted = wishes.due(stall, snapshot, finding, bounds, settings)
    memory = replace(memory, stall=stall)
    return memory, _decision(memory, snapshot, bounds, state, reason, wanted, is_frozen)


def _decision(
    memory: Memory,
    snapshot: Snapshot,
    bounds: Limits,
    state: State,
    reason: str,
    wanted: tuple[Wish, ...] = (),
    is_frozen: bool | None = None,
) -> Decision:
    over_since_s = memory.over_since_s
    return Decision(
        state=state,
        stalled_s=progress.stalled_s(memory, snapshot.taken_s),
        limits=bounds,
        wishes=wanted,
        reason=reason,
        is_frozen=is_frozen,
        is_over=over_since_s is not None and snapshot.taken_s - over_since_s >= _OVER_AFTER_S,
    )


def needs_diagnosis(snapshot: Snapshot, memory: Memory, settings: DetectSettings = DEFAULT) -> bool:
    """Whether anything is odd: a quiet rank, a process gone, a wait, a silent link."""
    if memory.stall is not None and (memory.stall.is_hung or memory.stall.wished_s):
        return True
    for view in snapshot.ranks.values():
        beat = view.beat
        if beat is None or view.link is not Link.LIVE or beat.waits or beat.calls:
            return True
        if beat.process.state in ("gone", "T", "Z", "X"):
            return True
        quiet_s = progress.quiet_s(view)
        if quiet_s is not None and quiet_s >= settings.needs_diagnosis_s:
            return True
    return False
