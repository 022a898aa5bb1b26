"""One step of detection: from a snapshot and its finding to a state, with reasons and wishes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hangwatch_server import process_states
from hangwatch_server.detect import (
    arrivals,
    frozen,
    hard,
    judgement,
    learning,
    lifecycle,
    limits,
    phases,
    progress,
    restarts,
    sampling,
    stillness,
    wishes,
)
from hangwatch_server.detect.decision import Decision, Wish
from hangwatch_server.detect.judgement import Case
from hangwatch_server.detect.learning import TRAINING
from hangwatch_server.detect.memory import Memory, Stall
from hangwatch_server.detect.phases import Phase
from hangwatch_server.detect.settings import DEFAULT, DetectSettings
from hangwatch_server.model import Finding, Kind, Limits, Link, Snapshot, State

_ODD_STATES = process_states.ENDED | process_states.STOPPED
# Before this a wait is everyday: no traces are kept of it.
_TRACE_AFTER_S = 2.0


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
    memory = replace(memory, sampling=sampling.observe(memory.sampling, snapshot, settings))
    memory, current = _observe_phase(memory, snapshot, finding, settings)
    bounds = _limits(memory, snapshot, finding, settings)
    memory = _observe_end(memory, snapshot)
    told = _Told(memory, snapshot, finding, bounds, settings)
    ended = lifecycle.ended(snapshot)
    if ended is not None:
        return memory, told.decision(*ended)
    if finding.kind is Kind.NONE or memory.stall is None:
        calm = lifecycle.blind(snapshot) or lifecycle.still(memory, snapshot, bounds, settings)
        calm = calm or lifecycle.calm(memory, snapshot, settings)
        return memory, told.decision(*calm)
    return _stalled(told, current)


@dataclass(frozen=True, slots=True)
class _Told:
    """What a decision is made of, besides the judgement."""

    memory: Memory
    snapshot: Snapshot
    finding: Finding
    bounds: Limits
    settings: DetectSettings

    def decision(
        self,
        state: State,
        reason: str,
        is_frozen: bool | None = None,
        wanted: tuple[Wish, ...] = (),
    ) -> Decision:
        memory, now_s = self.memory, self.snapshot.taken_s
        over_since_s = memory.over_since_s
        again = restarts.evidence(memory, self.finding)
        return Decision(
            state=state,
            stalled_s=progress.stalled_s(memory, now_s),
            limits=self.bounds,
            wishes=wanted,
            reason=reason,
            evidence=(*again, *memory.stragglers),
            is_frozen=is_frozen,
            is_repeated=bool(again),
            is_over=over_since_s is not None
            and now_s - over_since_s >= self.settings.restart_within_s,
        )


def _observe_phase(
    memory: Memory, snapshot: Snapshot, finding: Finding, s: DetectSettings
) -> tuple[Memory, Phase | None]:
    """The memory with the phase that its gap will be learned in, and the culprits' phase now."""
    if memory.stall is None:
        return memory, None
    age_s = progress.stalled_s(memory, snapshot.taken_s)
    current = judgement.phase(snapshot, finding, age_s, s)
    stall = memory.stall
    # A checkpoint is recognised by its stacks, which outlast neither it nor the wait for it.
    name = phases.learned(snapshot, current)
    if current is None and stall.phase and name == TRAINING:
        name = stall.phase
    return replace(memory, stall=replace(stall, phase=name)), current


def _limits(
    memory: Memory, snapshot: Snapshot, finding: Finding, settings: DetectSettings
) -> Limits:
    phase = learning.phase_of(memory, memory.stall) if memory.stall else TRAINING
    bounds = limits.limits(memory, snapshot, finding, phase, settings)
    if not sampling.is_needed(snapshot, finding):
        return bounds
    words = sampling.bound(memory.sampling, settings).in_words()
    return replace(bounds, why=f"{bounds.why}; {words}")


def _observe_end(memory: Memory, snapshot: Snapshot) -> Memory:
    if not lifecycle.is_over(snapshot):
        return replace(memory, over_since_s=None)
    if memory.over_since_s is not None:
        return memory
    return replace(memory, over_since_s=snapshot.taken_s)


def _stalled(told: _Told, current: Phase | None) -> tuple[Memory, Decision]:
    memory, snapshot, finding, settings = told.memory, told.snapshot, told.finding, told.settings
    assert memory.stall is not None  # step() looked
    age_s = progress.stalled_s(memory, snapshot.taken_s)
    stall = _observed(memory.stall, snapshot, finding, age_s, settings)
    is_sampled = sampling.is_needed(snapshot, finding)
    case = Case(
        memory=replace(memory, stall=stall),
        stall=stall,
        snapshot=snapshot,
        finding=finding,
        limits=told.bounds,
        stalled_s=age_s,
        settings=settings,
        bound=sampling.bound(memory.sampling, settings) if is_sampled else None,
        current=current,
    )
    state, reason, is_frozen = judgement.judge(case)
    if state is State.HUNG and restarts.same_place(memory, finding):
        reason = f"{reason}; an earlier attempt stood still at the same place"
    was_frozen = bool(is_frozen) and state in (State.SUSPECTED, State.HUNG)
    stall = replace(
        stall,
        is_hung=stall.is_hung or state is State.HUNG,
        was_frozen=stall.was_frozen or was_frozen,
    )
    stall, wanted = wishes.due(stall, snapshot, finding, told.bounds, settings)
    memory = replace(memory, stall=stall)
    return memory, replace(told, memory=memory).decision(state, reason, is_frozen, wanted)


def _observed(
    stall: Stall, snapshot: Snapshot, finding: Finding, age_s: float, s: DetectSettings
) -> Stall:
    stall = arrivals.observe(stall, finding, age_s)
    if finding.kind is Kind.NO_PROGRESS:
        stall = stillness.observe(stall, snapshot)
    if age_s < _TRACE_AFTER_S:
        return stall
    return frozen.observe(stall, snapshot, wishes.candidates(snapshot, finding, s), s)


def needs_diagnosis(snapshot: Snapshot, memory: Memory, settings: DetectSettings = DEFAULT) -> bool:
    """Whether anything is odd: a quiet rank, a process gone, a wait, a silent link."""
    if memory.stall is not None and (memory.stall.is_hung or memory.stall.wished_s):
        return True
    if any(answer.unchanged_s >= settings.needs_diagnosis_s for answer in snapshot.ras):
        return True
    for view in snapshot.ranks.values():
        beat = view.beat
        if beat is None or view.link is not Link.LIVE or beat.waits or beat.calls:
            return True
        if sampling.is_inside(view):
            return True
        if beat.process.state in _ODD_STATES:
            return True
        unmoved_s = progress.unmoved_s(view)
        if unmoved_s is not None and unmoved_s >= settings.needs_diagnosis_s:
            return True
    return False
