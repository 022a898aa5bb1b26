"""What of an incident was told to whom, and what comes next if nobody does anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlencode

from hangwatch_server.alerts import matching
from hangwatch_server.db import channels as channel_rows
from hangwatch_server.db import deliveries as delivery_rows
from hangwatch_server.model import Incident, IncidentState
from hangwatch_server.model.alerts import Channel, DeliveryState, DeliverySummary, Topic
from hangwatch_server.pages import alert_words, render
from hangwatch_server.services import Services

_CALLS = (Topic.OPENED, Topic.REMINDER)
_CALLED = (DeliveryState.SENT, DeliveryState.PENDING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """A message that comes unless somebody acknowledges the incident first."""

    channel: str  # its name
    what: str
    at: datetime


async def of_incident(house: Services, incident: Incident, now: datetime) -> render.Values:
    sent = await delivery_rows.of_incident(house.db, incident.id)
    channels = await channel_rows.list_all(house.db)
    return {
        "alerts": sent,
        "ahead": ahead(incident, channels, sent, now),
        "has_channels": any(channel.is_enabled for channel in channels),
        "is_told": bool(_meant(incident, channels)),
        "alert_words": alert_words,
        "silence_address": f"/silences?{urlencode({'job': incident.job_name[:200]})}",
    }


def ahead(
    incident: Incident,
    channels: Sequence[Channel],
    sent: Sequence[DeliverySummary],
    now: datetime,
) -> tuple[Ahead, ...]:
    """Escalations and reminders, the next first; none once it is acknowledged, snoozed or over."""
    is_snoozed = incident.snoozed_until is not None and incident.snoozed_until > now
    if incident.state is not IncidentState.CONFIRMED or incident.acknowledged_by or is_snoozed:
        return ()
    found = []
    for channel in _meant(incident, channels):
        own = [row for row in sent if row.channel == channel.id and row.topic in _CALLS]
        calls = [row for row in own if row.state in _CALLED]
        if not own and channel.after_s and incident.confirmed_at is not None:
            due = incident.confirmed_at + timedelta(seconds=channel.after_s)
            found.append(Ahead(channel=channel.name, what="escalation", at=due))
        elif calls and channel.remind_s and Topic.REMINDER in channel.topics:
            due = max(row.created_at for row in calls) + timedelta(seconds=channel.remind_s)
            found.append(Ahead(channel=channel.name, what="reminder", at=due))
    return tuple(sorted(found, key=lambda item: item.at))


def _meant(incident: Incident, channels: Sequence[Channel]) -> list[Channel]:
    """Those that are told of such an incident."""
    subject = matching.subject_of(incident)
    return [
        channel
        for channel in channels
        if channel.is_enabled
        and Topic.OPENED in channel.topics
        and matching.matches(channel.matchers, subject)
    ]
