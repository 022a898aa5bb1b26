"""What comes next for an incident if nobody does anything."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from tests.support import alerts
from tests.web.preview_alerts import channel

from hangwatch_server.model import Incident
from hangwatch_server.model.alerts import (
    Channel,
    ChannelKind,
    DeliveryState,
    DeliverySummary,
    Matcher,
    MatchField,
    Topic,
)
from hangwatch_server.pages import alerts_sent

CONFIRMED = alerts.OPENED + timedelta(seconds=15)
NOW = CONFIRMED + timedelta(minutes=2)
CHAT = channel("c1", "chat", ChannelKind.SLACK_BOT, remind_s=1800.0)
PAGER = channel("c2", "pager", ChannelKind.PAGERDUTY, after_s=900.0, remind_s=0.0)


def told(where: Channel, state: DeliveryState = DeliveryState.SENT) -> DeliverySummary:
    return DeliverySummary(
        id="msg_1",
        channel=where.id,
        channel_name=where.name,
        topic=Topic.OPENED,
        number=0,
        about="incident:1f2e3d4c5b6a",
        incident="1f2e3d4c5b6a",
        title="",
        state=state,
        reason="",
        tries=1,
        created_at=CONFIRMED + timedelta(seconds=10),
        next_at=None,
        sent_at=None,
    )


def ahead(incident: Incident, *sent: DeliverySummary, channels: tuple[Channel, ...]) -> list[str]:
    found = alerts_sent.ahead(incident, channels, sent, NOW)
    return [
        f"{item.what} to {item.channel} in {(item.at - NOW).total_seconds():.0f} s"
        for item in found
    ]


def test_the_next_to_come_stands_first() -> None:
    assert ahead(alerts.incident(), told(CHAT), channels=(CHAT, PAGER)) == [
        "escalation to pager in 780 s",
        "reminder to chat in 1690 s",
    ]


def test_nothing_comes_once_somebody_has_it_or_it_is_over() -> None:
    snoozed = alerts.incident(snoozed_until=NOW + timedelta(hours=1))

    for incident in (alerts.acknowledged(), alerts.resolved(), snoozed):
        assert ahead(incident, told(CHAT), channels=(CHAT, PAGER)) == []


def test_what_was_held_back_is_not_reminded_of() -> None:
    silenced = told(CHAT, DeliveryState.SILENCED)

    assert ahead(alerts.incident(), silenced, channels=(CHAT,)) == []


def test_a_channel_for_other_hangs_or_switched_off_gets_nothing() -> None:
    other = replace(PAGER, matchers=(Matcher(field=MatchField.JOB, pattern="llama-*"),))
    off = replace(PAGER, is_enabled=False)

    assert ahead(alerts.incident(), channels=(other, off)) == []
