"""What should happen to a job's incident, given what detection says now. Pure: no clock, no I/O.

Missing data is not progress: `unknown` and `starting` change nothing, so a server that has just
restarted keeps the incident it finds. A failure stays hidden until it is clear that no launcher
starts the job again. A confirmed incident stays until progress, the end of the job
(however it ended) or a restart; it is never hidden again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from hangwatch_server.model import JOB_FAILED, Incident, IncidentState, State, Verdict

REOPEN_WITHIN_S = 60.0
_ENDS = {State.FINISHED: "job finished", State.FAILED: JOB_FAILED}


class Action(StrEnum):
    OPEN = "open"  # hidden, with the evidence that is at hand
    REOPEN = "reopen"  # the recent one, still hidden from alerts until confirmed
    CONFIRM = "confirm"
    UPDATE = "update"  # newer verdict; `why` is empty when people need no line about it
    END = "end"
    RECORD = "record"  # over already: a failure that left nobody waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    action: Action
    why: str = ""
    state: IncidentState | None = None  # for END


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is stored of this attempt's incidents."""

    active: Incident | None = None
    recent: Incident | None = None  # cleared by progress within REOPEN_WITHIN_S
    newest: Incident | None = None  # in whatever state


def steps(
    state: State, reason: str, verdict: Verdict, known: Known, *, is_over: bool = False
) -> tuple[Step, ...]:
    """The changes that bring the stored incident in line with `state`, in order.

    `is_over`: no process of the job is left, and none has taken its place.
    """
    if known.active is not None:
        if is_over:
            return _end(state, reason, verdict, known.active)
        return _continue(state, reason, verdict, known.active)
    return _begin(state, reason, verdict, known)


def left_behind(active: Iterable[Incident], attempt: int) -> tuple[Incident, ...]:
    """Active incidents of attempts before this one: a restart has ended them."""
    return tuple(incident for incident in active if incident.attempt < attempt)


def restarted(attempt: int) -> str:
    """Why an incident ended whose attempt was replaced by this one."""
    return f"restarted as attempt {attempt}"


def is_same_stall(old: Verdict, new: Verdict) -> bool:
    """Whether two verdicts speak of the same ranks holding up the same group in the same way.

    The sequence number is left out: a stall that clears for one collective and comes back in the
    next is one trouble to the people who look at it.
    """
    return (
        old.kind == new.kind
        and old.culprit_ranks == new.culprit_ranks
        and (old.group.id if old.group else "") == (new.group.id if new.group else "")
    )


def _begin(state: State, reason: str, verdict: Verdict, known: Known) -> tuple[Step, ...]:
    if state is State.SUSPECTED:
        return (_open(reason, verdict, known.recent),)
    if state is State.HUNG:
        return (
            _open(reason, verdict, known.recent),
            Step(action=Action.CONFIRM, why=reason),
        )
    has_ended = known.newest is not None and known.newest.state is IncidentState.ENDED
    if state is State.FAILED and not has_ended:
        if verdict.waiting:  # hidden until it is clear that no launcher starts the job again
            return (_open(reason, verdict, known.recent),)
        return (Step(action=Action.RECORD, why=reason),)
    return ()


def _continue(state: State, reason: str, verdict: Verdict, active: Incident) -> tuple[Step, ...]:
    match state:
        case State.SUSPECTED:
            return _news(active.verdict, verdict)
        case State.HUNG:
            return _hold(reason, verdict, active)
        case State.HEALTHY:
            return _clear("progress", active) if _is_trusted(verdict, active) else ()
        case State.SLOW | State.EXPECTED_WAIT:
            return _clear(reason, active) if active.state is IncidentState.OPEN else ()
        case State.FINISHED:
            return _finish(state, active)
        case State.FAILED:
            return _fail(verdict, active)
        case State.UNKNOWN | State.STARTING:
            return ()


def _open(reason: str, verdict: Verdict, recent: Incident | None) -> Step:
    if recent is not None and is_same_stall(recent.verdict, verdict):
        return Step(action=Action.REOPEN, why=f"the same stall came back: {reason}")
    return Step(action=Action.OPEN, why=reason)


def _hold(reason: str, verdict: Verdict, active: Incident) -> tuple[Step, ...]:
    if active.state is IncidentState.OPEN:
        return (Step(action=Action.CONFIRM, why=reason),)
    return _news(active.verdict, verdict)


def _is_trusted(verdict: Verdict, active: Incident) -> bool:
    """Healthy as far as fewer ranks can tell than raised the incident is no progress.

    That is the view of a server just after its restart, while agents are still reconnecting.
    """
    return (
        verdict.coverage.world_size == 0
        or verdict.coverage.reporting >= active.verdict.coverage.reporting
    )


def _clear(why: str, active: Incident) -> tuple[Step, ...]:
    was_shown = active.confirmed_at is not None
    state = IncidentState.RESOLVED if was_shown else IncidentState.PRUNED
    return (Step(action=Action.END, why=why, state=state),)


def _finish(state: State, active: Incident) -> tuple[Step, ...]:
    """The verdict stays the one that explains the hang; what ended the job is the reason."""
    was_shown = active.confirmed_at is not None or state is State.FAILED
    ended = IncidentState.ENDED if was_shown else IncidentState.PRUNED
    return (Step(action=Action.END, why=_ENDS.get(state, "job ended"), state=ended),)


def _fail(verdict: Verdict, active: Incident) -> tuple[Step, ...]:
    """A hang keeps its verdict: the failure is its consequence. A restart may still come."""
    if active.state is IncidentState.OPEN and verdict.waiting:
        return _news(active.verdict, verdict)
    return ()


def _end(state: State, reason: str, verdict: Verdict, active: Incident) -> tuple[Step, ...]:
    """No restart came: people are told of a failure that left others waiting."""
    finish = _finish(state, active)
    is_news = active.state is IncidentState.OPEN and bool(verdict.waiting)
    if state is State.FAILED and is_news:
        return (Step(action=Action.CONFIRM, why=reason), *finish)
    return finish


def _news(old: Verdict, new: Verdict) -> tuple[Step, ...]:
    """An update when something besides the passing of time has changed."""
    changes = [
        text
        for changed, text in (
            (old.kind != new.kind, f"kind: {old.kind} -> {new.kind}"),
            (
                old.culprit_ranks != new.culprit_ranks,
                f"culprits: {old.culprit_ranks or 'none'} -> {new.culprit_ranks or 'none'}",
            ),
        )
        if changed
    ]
    if changes or _substance(old) != _substance(new):
        return (Step(action=Action.UPDATE, why="; ".join(changes)),)
    return ()


def _substance(verdict: Verdict) -> tuple[object, ...]:
    """What of a verdict is worth storing again; its texts and durations change every second."""
    return (
        verdict.group,
        verdict.seq,
        verdict.op,
        verdict.waiting,
        tuple((culprit.rank, culprit.condition, culprit.where) for culprit in verdict.culprits),
        tuple((item.kind, item.capture) for item in verdict.evidence),
        verdict.hints,
        verdict.action,
    )
