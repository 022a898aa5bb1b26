"""Puts a finding and a decision together into the verdict of the REST contract. Pure."""

from __future__ import annotations

import dataclasses
from datetime import datetime

from hangwatch_server import ranges
from hangwatch_server.board import JobMeta
from hangwatch_server.detect import Decision
from hangwatch_server.model import (
    Action,
    Coverage,
    Evidence,
    Finding,
    Kind,
    Limits,
    Snapshot,
    State,
    Verdict,
)

_QUIET = {
    State.STARTING: "The job is starting.",
    State.HEALTHY: "All ranks make progress.",
    State.FINISHED: "The job has finished.",
}
# States in which nothing is wrong: a finding that detection did not take up is not shown.
_NOTHING = (State.STARTING, State.HEALTHY, State.FINISHED)
MAX_CULPRITS = 64
Key = tuple[int, State, Kind, str, str | None]


def key(verdict: Verdict) -> Key:
    """The index rises when, and only when, this changes."""
    return (
        verdict.attempt,
        verdict.state,
        verdict.kind,
        verdict.culprit_ranks,
        verdict.incident,
    )


def build(
    meta: JobMeta,
    snapshot: Snapshot,
    finding: Finding,
    decision: Decision,
    previous: Verdict | None,
    now: datetime,
) -> Verdict:
    """The verdict of this moment, with the index and incident of the previous one."""
    shown = finding if decision.state not in _NOTHING else _none(finding)
    is_same = (
        previous is not None
        and previous.attempt == snapshot.attempt
        and previous.state is decision.state
    )
    return Verdict(
        job=meta.id,
        name=meta.name,
        attempt=snapshot.attempt,
        index=previous.index if previous is not None else 0,
        state=decision.state,
        kind=shown.kind,
        confidence=shown.confidence,
        since=previous.since if previous is not None and is_same else now,
        stalled_s=round(decision.stalled_s, 1) if decision.state not in _NOTHING else 0.0,
        summary=_summary(shown, decision),
        group=shown.group,
        seq=shown.seq,
        op=shown.op,
        culprits=(*shown.culprits, *shown.besides)[:MAX_CULPRITS],
        culprit_ranks=_culprit_ranks(shown),
        waiting=_waiting(shown),
        path=shown.path,
        edges=shown.edges,
        cycle=shown.cycle,
        sides=shown.sides,
        evidence=(*shown.evidence, *decision.evidence, *_reason(shown, decision)),
        hints=shown.hints,
        coverage=shown.coverage,
        action=Action(),
        limits=decision.limits,
        incident=_incident(previous, snapshot.attempt),
        shift=shown.shift,
        causes=shown.causes,
    )


def followed(draft: Verdict, stored: Verdict | None) -> Verdict:
    """What to show of a job that another server owns: its verdict, with our newer numbers if we
    believe the same."""
    if stored is None:
        return draft
    if key(dataclasses.replace(draft, incident=stored.incident)) != key(stored):
        return stored
    return dataclasses.replace(
        draft, index=stored.index, incident=stored.incident, since=stored.since
    )


def unseen(verdict: Verdict, reason: str) -> Verdict:
    """A stored verdict of a job that no agent reports now: nothing is known of its ranks."""
    if verdict.state in (State.FINISHED, State.FAILED):
        return verdict
    return dataclasses.replace(
        verdict,
        state=State.UNKNOWN,
        summary=reason,
        coverage=_nobody(verdict.coverage.world_size),
        action=dataclasses.replace(verdict.action, advice="wait", exclude_nodes=()),
    )


def _nobody(size: int) -> Coverage:
    """No rank of a job is heard."""
    silent = f"0-{size - 1}" if size > 1 else "0"
    return Coverage(reporting=0, world_size=size, silent=silent)


def stored_as(state: State | None) -> tuple[State, ...]:
    """The stored states of jobs that are shown as `state` once no agent reports them (`unseen`)."""
    over = (State.FINISHED, State.FAILED)
    if state is None:
        return tuple(State)
    if state is State.UNKNOWN:
        return tuple(one for one in State if one not in over)
    return (state,) if state in over else ()


def first(meta: JobMeta, now: datetime) -> Verdict:
    """What is believed of a job before the first look at it."""
    return Verdict(
        job=meta.id,
        name=meta.name,
        attempt=meta.attempt,
        index=0,
        state=State.STARTING,
        kind=Kind.NONE,
        confidence=0.0,
        since=now,
        stalled_s=0.0,
        summary=_QUIET[State.STARTING],
        group=None,
        seq=None,
        op="",
        culprits=(),
        culprit_ranks="",
        waiting="",
        path=(),
        edges=(),
        cycle=(),
        sides=(),
        evidence=(),
        hints=(),
        coverage=_nobody(meta.world_size),
        action=Action(),
        limits=Limits(suspect_after_s=0.0, confirm_after_s=0.0, why=""),
    )


def _culprit_ranks(finding: Finding) -> str:
    """Of independent causes all are named: to mend one would only uncover the next."""
    if not finding.causes:
        return finding.culprit_ranks
    return ranges.text(_beside(finding).union(ranges.parse(finding.culprit_ranks)))


def _waiting(finding: Finding) -> str:
    if not finding.causes:
        return finding.waiting
    return ranges.text(set(ranges.parse(finding.waiting)) - _beside(finding))


def _beside(finding: Finding) -> set[int]:
    return {rank for cause in finding.causes for rank in ranges.parse(cause.culprit_ranks)}


def _none(finding: Finding) -> Finding:
    return Finding(kind=Kind.NONE, confidence=finding.confidence, coverage=finding.coverage)


def _summary(finding: Finding, decision: Decision) -> str:
    if decision.is_over and decision.state is not State.FINISHED:
        before = f" Before that: {finding.summary}" if finding.summary else ""
        return f"The job has ended: {decision.reason}.{before}"
    if finding.summary:
        return finding.summary
    return _QUIET.get(decision.state) or decision.reason or "Not enough is known of this job."


def _reason(finding: Finding, decision: Decision) -> tuple[Evidence, ...]:
    """Why the state is what it is, where the summary tells of the finding alone."""
    if not finding.summary or not decision.reason or decision.is_over:
        return ()
    state = decision.state.value.replace("_", " ").capitalize()
    return (Evidence(kind="state", text=f"{state}: {decision.reason}."),)


def _incident(previous: Verdict | None, attempt: int) -> str | None:
    if previous is None or previous.attempt != attempt:
        return None
    return previous.incident
