"""Which messages about an incident must exist now. Pure: no clock, no I/O, no words of a message.

Level-triggered: it looks at what stands and at what was told, never at changes, so that nothing is
lost while a server is away, and planning twice asks for nothing twice. In this order:

1. `opened`, once the incident has settled; held back while a silence or a snooze is on. One that is
   over before is told to nobody, and the row that is held back for good says why.
2. `reminder`, while it stands and nobody has acknowledged it.
3. `acknowledged` and 4. `resolved`, on channels that were told that it opened. A silence does not
   hold these back: what was raised must not stay raised for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from hangwatch_server import durations
from hangwatch_server.alerts import matching
from hangwatch_server.incidents.lifecycle import REOPEN_WITHIN_S
from hangwatch_server.model import JOB_FAILED, IncidentState
from hangwatch_server.model.alerts import Channel, ChannelKind, DeliveryState, Silence, Topic
from hangwatch_server.model.outbox import Case, Due, Told

# The stall that comes back re-opens the incident until then; the write may come a little later.
REOPENED_BY_S = REOPEN_WITHIN_S + 5.0
# Kinds whose receiver takes an alert for over that is not sent again, and when it is: well before.
RENEWED_AFTER = {ChannelKind.ALERTMANAGER: timedelta(hours=12)}
_TOLD = (DeliveryState.PENDING, DeliveryState.SENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    settle_s: float


def due(
    case: Case,
    channel: Channel,
    told: Sequence[Told],
    silences: Iterable[Silence],
    rules: Rules,
    now: datetime,
) -> tuple[Due, ...]:
    """What this channel must be told that it was not; `told` are its deliveries of this incident.

    `now` is the database's, as all times of rows are.
    """
    opened = next((one for one in told if one.topic is Topic.OPENED), None)
    if opened is None and not matching.matches(channel.matchers, case.subject):
        return ()
    held = held_back(case, silences, now)
    found = [_opening(case, channel, opened, held, rules, now)]
    if _knows(case, channel, opened, found[0], held, rules, now):
        found += [
            _reminder(case, channel, opened, told, held, now),
            _acknowledgement(case, channel, told),
            _resolution(case, channel, told, now),
        ]
    return tuple(one for one in found if one is not None)


def held_back(case: Case, silences: Iterable[Silence], now: datetime) -> str:
    """Why no alarm is raised about it now, in words; "" if one may be."""
    if case.snoozed_until is not None and now < case.snoozed_until:
        return f"snoozed until {_time(case.snoozed_until)}"
    silence = matching.first_on(silences, case.subject, now)
    if silence is None:
        return ""
    end = matching.end_of(silence, now)
    comment = f": {silence.comment}" if silence.comment else ""
    return f"silenced by {silence.created_by} until {_time(end or now)}{comment}"


def is_closed(case: Case, now: datetime) -> bool:
    """Whether nothing can happen to it any more that people would have to be told."""
    return case.ended_at is not None and now >= case.ended_at + _seconds(REOPENED_BY_S)


def _opening(
    case: Case, channel: Channel, opened: Told | None, held: str, rules: Rules, now: datetime
) -> Due | None:
    has_settled = _has_settled(case, channel, rules, now)
    if opened is None:
        held = held if has_settled else _over_early(case, channel, rules)
        is_wanted = Topic.OPENED in channel.topics and (has_settled or held)
        return Due(channel=channel.id, topic=Topic.OPENED, held=held) if is_wanted else None
    is_woken = (
        opened.state is DeliveryState.SILENCED
        and not held
        and case.state is IncidentState.CONFIRMED
        and has_settled
    )
    return Due(channel=channel.id, topic=Topic.OPENED, wakes=opened.id) if is_woken else None


def _has_settled(case: Case, channel: Channel, rules: Rules, now: datetime) -> bool:
    """Whether it stood for long enough, by now or before it ended.

    A job that failed does not come back by itself: that is told however soon it came. One that is
    suspected again after it had cleared waits for its confirmation.
    """
    if case.state is IncidentState.OPEN or _is_answered(case, channel):
        return False
    stands_at = case.confirmed_at + _seconds(_patience_s(channel, rules))
    if case.ended_at is None:
        return stands_at <= now
    if channel.created_at > case.ended_at:
        return False
    is_failure = case.state is IncidentState.ENDED and case.end_reason == JOB_FAILED
    return stands_at <= case.ended_at or (is_failure and not channel.after_s)


def _over_early(case: Case, channel: Channel, rules: Rules) -> str:
    """Why nobody is told of what has not settled; "" while it may settle, or nobody would ask."""
    if case.ended_at is None or channel.created_at > case.ended_at or _is_answered(case, channel):
        return ""
    if case.state is IncidentState.OPEN:
        return ""
    lasted = durations.spoken((case.ended_at - case.confirmed_at).total_seconds())
    patience = durations.spoken(_patience_s(channel, rules))
    how = f" ({case.end_reason})" if case.end_reason else ""
    return f"over {lasted} after its confirmation{how}; this channel is told after {patience}"


def _patience_s(channel: Channel, rules: Rules) -> float:
    return max(rules.settle_s, channel.after_s)


def _is_answered(case: Case, channel: Channel) -> bool:
    """An escalation is for what nobody has acknowledged."""
    return channel.after_s > 0 and case.acknowledged_at is not None


def _knows(
    case: Case,
    channel: Channel,
    opened: Told | None,
    opening: Due | None,
    held: str,
    rules: Rules,
    now: datetime,
) -> bool:
    """Whether this channel was told of it, or would have been if it asked for that."""
    if opening is not None:
        return not opening.held
    if opened is not None:
        return opened.state in _TOLD
    if Topic.OPENED in channel.topics:
        return False
    return not held and _has_settled(case, channel, rules, now)


def _reminder(
    case: Case,
    channel: Channel,
    opened: Told | None,
    told: Sequence[Told],
    held: str,
    now: datetime,
) -> Due | None:
    """The next one, counted from the last message that arrived; a snooze that ended makes one."""
    if case.state is not IncidentState.CONFIRMED:
        return None
    if opened is None or opened.state is not DeliveryState.SENT:
        return None
    reminders = [one for one in told if one.topic is Topic.REMINDER]
    last = max(reminders, key=lambda one: one.number, default=opened)
    if last.state is DeliveryState.PENDING:
        return None
    last_at = last.sent_at or last.created_at
    is_wanted = Topic.REMINDER in channel.topics and case.acknowledged_at is None and not held
    is_time = channel.remind_s > 0 and last_at + _seconds(channel.remind_s) <= now
    was_snoozed = case.snoozed_until is not None and last_at < case.snoozed_until
    if not (is_wanted and (is_time or was_snoozed)) and not is_fading(channel, last_at, now):
        return None
    return Due(channel=channel.id, topic=Topic.REMINDER, number=last.number + 1)


def is_fading(channel: Channel, last_at: datetime, now: datetime) -> bool:
    """Whether the receiver would soon forget what stands: it is said again, whoever knows of it.

    Not a call but the state of an alert, so silences and acknowledgements do not matter here.
    """
    renew = RENEWED_AFTER.get(channel.kind)
    return renew is not None and last_at + renew <= now


def _acknowledgement(case: Case, channel: Channel, told: Sequence[Told]) -> Due | None:
    is_wanted = Topic.ACKNOWLEDGED in channel.topics and case.acknowledged_at is not None
    if not is_wanted or _has(told, Topic.ACKNOWLEDGED):
        return None
    return Due(channel=channel.id, topic=Topic.ACKNOWLEDGED)


def _resolution(case: Case, channel: Channel, told: Sequence[Told], now: datetime) -> Due | None:
    """Not before the stall could have come back: it would be the same incident."""
    if Topic.RESOLVED not in channel.topics or case.ended_at is None:
        return None
    may_come_back = case.state is IncidentState.RESOLVED and not is_closed(case, now)
    if may_come_back or _has(told, Topic.RESOLVED):
        return None
    return Due(channel=channel.id, topic=Topic.RESOLVED)


def _has(told: Sequence[Told], topic: Topic) -> bool:
    return any(one.topic is topic for one in told)


def _seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


def _time(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M UTC")
