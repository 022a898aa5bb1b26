"""Which incidents a channel or a silence means, and whether a silence is on. Pure.

Patterns are those of `patterns` (`gpt-*`), as everywhere; all matchers must match.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from hangwatch_server import patterns
from hangwatch_server.model import Incident, Verdict
from hangwatch_server.model.alerts import Matcher, MatchField, Repeat, Silence
from hangwatch_server.model.outbox import Subject

_PERIODS = {Repeat.DAILY: timedelta(days=1), Repeat.WEEKLY: timedelta(weeks=1)}


def subject_of(incident: Incident) -> Subject:
    return of_verdict(incident.verdict)


def of_verdict(verdict: Verdict) -> Subject:
    culprits = verdict.culprits
    return Subject(
        job=verdict.name,
        job_id=verdict.job,
        nodes=tuple(sorted({culprit.node for culprit in culprits if culprit.node})),
        kind=verdict.kind.value,
        conditions=tuple(sorted({culprit.condition.value for culprit in culprits})),
    )


def matches(matchers: Sequence[Matcher], subject: Subject) -> bool:
    """Whether all of them match; none at all match everything."""
    return all(_matches(matcher, subject) for matcher in matchers)


def is_on(silence: Silence, now: datetime) -> bool:
    return end_of(silence, now) is not None


def end_of(silence: Silence, now: datetime) -> datetime | None:
    """When the occurrence ends that is on now; None while none is.

    A repetition is a day or a week of 24 hours each after the last: in UTC, summer time or not.
    """
    if silence.cancelled_at is not None or now < silence.starts_at:
        return None
    period = _PERIODS.get(silence.repeat)
    past = (now - silence.starts_at) // period * period if period else timedelta()
    end = silence.ends_at + past
    return end if now < end else None


def first_on(silences: Iterable[Silence], subject: Subject, now: datetime) -> Silence | None:
    """A silence that holds this back now."""
    for silence in silences:
        if is_on(silence, now) and matches(silence.matchers, subject):
            return silence
    return None


def _matches(matcher: Matcher, subject: Subject) -> bool:
    return any(
        patterns.matches(matcher.pattern, value) for value in _values(matcher.field, subject)
    )


def _values(field: MatchField, subject: Subject) -> tuple[str, ...]:
    match field:
        case MatchField.JOB:
            return (subject.job, subject.job_id)
        case MatchField.NODE:
            return subject.nodes
        case MatchField.KIND:
            return (subject.kind,)
        case MatchField.CONDITION:
            return subject.conditions
