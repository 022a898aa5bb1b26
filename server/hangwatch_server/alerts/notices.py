"""Which notices must exist now: of stragglers, and of the monitor's own blindness. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from hangwatch_server.alerts import matching, planning
from hangwatch_server.model import Job, State
from hangwatch_server.model.alerts import (
    BlindCause,
    BlindSpell,
    Channel,
    DeliveryState,
    Silence,
    Topic,
)
from hangwatch_server.model.outbox import Due, Subject, Told

# A straggler that catches up within a minute is no news.
SLOW_FOR_S = 60.0
_HELD = "silenced by {} until {:%Y-%m-%d %H:%M} UTC"


def of_slow_job(
    job: Job, channel: Channel, told: Sequence[Told], silences: Sequence[Silence], now: datetime
) -> tuple[Due, ...]:
    """Once per attempt and set of stragglers, and only where somebody asked for it."""
    if job.state is not State.SLOW or Topic.SLOW not in channel.topics:
        return ()
    if told:
        return _renewal(Topic.SLOW, channel, told, now)
    subject = matching.of_verdict(job.verdict)
    is_new = now < job.verdict.since + timedelta(seconds=SLOW_FOR_S)
    if is_new or not matching.matches(channel.matchers, subject):
        return ()
    held = _held(silences, subject, now)
    return (Due(channel=channel.id, topic=Topic.SLOW, held=held),)


def of_caught_up(told: Told, job: Job, channel: Channel, now: datetime) -> tuple[Due, ...]:
    """The end of a notice that stands and is about no straggler of now.

    A job that holds still for a moment is no end yet; one that is slow and not heard, or slow by
    another rank, is.
    """
    is_new = now < job.verdict.since + timedelta(seconds=SLOW_FOR_S)
    if Topic.RESOLVED not in channel.topics or (is_new and job.state is not State.SLOW):
        return ()
    return (Due(channel=told.channel, topic=Topic.RESOLVED),)


def of_spell(
    spell: BlindSpell,
    channel: Channel,
    told: Sequence[Told],
    silences: Sequence[Silence],
    now: datetime,
) -> tuple[Due, ...]:
    """That Hangwatch is blind, and to whom that was told, that it sees again.

    That the database was away can only be told afterwards: in one message, which calls nobody and
    opens nothing in a pager that nothing would close.
    """
    subject = Subject(job=spell.job_name, job_id=spell.subject, nodes=(), kind="", conditions=())
    if spell.job_name and not matching.matches(channel.matchers, subject):
        return ()
    blind = next((one for one in told if one.topic is Topic.BLIND), None)
    is_said = any(one.topic is Topic.SIGHTED for one in told)
    held = _held(silences, subject, now)
    if spell.cause is BlindCause.DATABASE:
        is_wanted = Topic.SIGHTED in channel.topics and not is_said
        return (Due(channel=channel.id, topic=Topic.SIGHTED, held=held),) if is_wanted else ()
    if blind is None:
        is_wanted = Topic.BLIND in channel.topics and spell.ended_at is None
        return (Due(channel=channel.id, topic=Topic.BLIND, held=held),) if is_wanted else ()
    if spell.ended_at is None and blind.state is DeliveryState.SENT:
        return _renewal(Topic.BLIND, channel, told, now)
    if spell.ended_at is None:
        is_woken = blind.state is DeliveryState.SILENCED and not held
        return (Due(channel=channel.id, topic=Topic.BLIND, wakes=blind.id),) if is_woken else ()
    was_told = blind.state in (DeliveryState.PENDING, DeliveryState.SENT)
    if is_said or not was_told or Topic.SIGHTED not in channel.topics:
        return ()
    return (Due(channel=channel.id, topic=Topic.SIGHTED),)


def _renewal(
    topic: Topic, channel: Channel, told: Sequence[Told], now: datetime
) -> tuple[Due, ...]:
    """Again what stands, where its receiver would soon take it for over."""
    last = next((one for one in told if one.topic is topic), None)
    if len(told) > 1 or last is None or last.state is not DeliveryState.SENT:
        return ()  # its end was told already, or it did not arrive
    if not planning.is_fading(channel, last.sent_at or last.created_at, now):
        return ()
    return (Due(channel=channel.id, topic=topic, number=last.number + 1),)


def _held(silences: Sequence[Silence], subject: Subject, now: datetime) -> str:
    silence = matching.first_on(silences, subject, now)
    if silence is None:
        return ""
    return _HELD.format(silence.created_by, matching.end_of(silence, now))
