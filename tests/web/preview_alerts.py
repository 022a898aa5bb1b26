"""What the preview's pages of alerting show: hand-made channels, messages and silences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from tests.web import making, scenes

from hangwatch_server.alerts import directory
from hangwatch_server.alerts.directory import USUAL_TOPICS, Trial
from hangwatch_server.db import channels, deliveries, silences
from hangwatch_server.model.alerts import (
    Attempt,
    Channel,
    ChannelKind,
    Delivery,
    DeliveryState,
    DeliverySummary,
    Matcher,
    MatchField,
    Message,
    Repeat,
    Silence,
    Topic,
)

HOSTILE_NAME = scenes.HOSTILE[:100]


def install(patch: Callable[[object, str, object], None]) -> None:
    """Let the pages' questions about alerts be answered from here."""
    patch(channels, "list_all", _channels)
    patch(channels, "find", _find_channel)
    patch(deliveries, "list_page", _deliveries)
    patch(deliveries, "newest_of_channels", _newest)
    patch(deliveries, "of_incident", _of_incident)
    patch(deliveries, "find", _find_delivery)
    patch(directory, "test", _test)
    patch(silences, "standing", _standing)
    patch(silences, "list_page", _over)


def channel(identifier: str, name: str, kind: ChannelKind, **changes: object) -> Channel:
    found = Channel(
        id=identifier,
        name=name,
        kind=kind,
        options={},
        secret_names=("url",),
        topics=USUAL_TOPICS,
        matchers=(),
        after_s=0.0,
        remind_s=1800.0,
        is_enabled=True,
        disabled_reason="",
        created_at=making.NOW - timedelta(days=12),
        created_by="ada",
    )
    return replace(found, **changes)  # type: ignore[arg-type]


CHANNELS = (
    channel(
        "ch-slack",
        "on-call",
        ChannelKind.SLACK_BOT,
        target="#training-alerts",
        secret_names=("token",),
        options={"channel": "#training-alerts", "mention": "here"},
    ),
    channel(
        "ch-pager",
        "pager",
        ChannelKind.PAGERDUTY,
        target="events.pagerduty.com",
        secret_names=("routing_key",),
        after_s=900.0,
        matchers=(
            Matcher(field=MatchField.JOB, pattern="gpt-*"),
            Matcher(field=MatchField.KIND, pattern="missing_ranks"),
        ),
    ),
    channel(
        "ch-robots",
        "requeue robot",
        ChannelKind.WEBHOOK,
        target="robots.cluster.example:8443",
        secret_names=("signing_key", "url"),
        remind_s=0.0,
        is_enabled=False,
        disabled_reason="the receiver answered 410: it wants nothing more",
    ),
    channel("ch-odd", HOSTILE_NAME, ChannelKind.APPRISE, target="mailtos", remind_s=0.0),
)


def _row(
    identifier: str, where: int, topic: Topic, state: DeliveryState, **changes: object
) -> DeliverySummary:
    found = DeliverySummary(
        id=identifier,
        channel=CHANNELS[where].id,
        channel_name=CHANNELS[where].name,
        topic=topic,
        number=0,
        about="incident:inc-hung",
        incident="inc-hung",
        title="Rank 5 (node-b, pid 812) never entered all_reduce #1042 of dp-1 · gpt-7b",
        state=state,
        reason="",
        tries=1,
        created_at=making.NOW - timedelta(minutes=4),
        next_at=None,
        sent_at=making.NOW - timedelta(minutes=4) if state is DeliveryState.SENT else None,
    )
    return replace(found, **changes)  # type: ignore[arg-type]


DELIVERIES = (
    _row(
        "msg_reminder",
        0,
        Topic.REMINDER,
        DeliveryState.PENDING,
        number=2,
        tries=3,
        reason="the receiver answered 503: try later",
        next_at=making.NOW + timedelta(minutes=9),
    ),
    _row("msg_opened", 0, Topic.OPENED, DeliveryState.SENT),
    _row(
        "msg_silenced",
        1,
        Topic.OPENED,
        DeliveryState.SILENCED,
        tries=0,
        reason="silenced by ada: storage upgrade on rack 4",
    ),
    _row(
        "msg_failed",
        2,
        Topic.OPENED,
        DeliveryState.FAILED,
        tries=1,
        reason="the receiver answered 410",
    ),
    _row(
        "msg_hostile",
        3,
        Topic.OPENED,
        DeliveryState.FAILED,
        title=scenes.HOSTILE,
        reason=scenes.HOSTILE,
        incident="inc-hostile",
    ),
)
_BASE = Silence(
    id="sil-on",
    matchers=(Matcher(field=MatchField.NODE, pattern="node-[a-d]"),),
    starts_at=making.NOW - timedelta(hours=1),
    ends_at=making.NOW + timedelta(days=2),
    repeat=Repeat.ONCE,
    created_at=making.NOW - timedelta(hours=1),
    created_by="ada",
    comment="storage upgrade on rack 4",
)
SILENCES = (
    _BASE,
    replace(
        _BASE,
        id="sil-weekly",
        matchers=(Matcher(field=MatchField.JOB, pattern="nightly-*"),),
        starts_at=making.NOW + timedelta(days=1),
        ends_at=making.NOW + timedelta(days=1, hours=4),
        repeat=Repeat.WEEKLY,
        comment="",
    ),
    replace(
        _BASE,
        id="sil-hostile",
        matchers=(Matcher(field=MatchField.JOB, pattern=HOSTILE_NAME),),
        comment=scenes.HOSTILE,
    ),
)


async def _channels(scene: scenes.Scene) -> list[Channel]:
    return [] if scene.is_without_alerts else list(CHANNELS)


async def _find_channel(scene: scenes.Scene, channel_id: str) -> Channel | None:
    return next((row for row in CHANNELS if row.id == channel_id), None)


async def _newest(scene: scenes.Scene) -> dict[str, DeliverySummary]:
    return {row.channel: row for row in reversed(DELIVERIES)}


async def _of_incident(scene: scenes.Scene, incident_id: str) -> list[DeliverySummary]:
    rows = [] if scene.is_without_alerts else DELIVERIES
    return [row for row in reversed(rows) if row.incident == incident_id]


async def _deliveries(
    scene: scenes.Scene, *, state: DeliveryState | None = None, **_: object
) -> tuple[list[DeliverySummary], str | None]:
    rows = [] if scene.is_without_alerts else list(DELIVERIES)
    return [row for row in rows if state is None or row.state is state], None


async def _find_delivery(scene: scenes.Scene, delivery_id: str) -> Delivery | None:
    row = next((row for row in DELIVERIES if row.id == delivery_id), None)
    if row is None:
        return None
    names = DeliverySummary.__dataclass_fields__
    tries = tuple(
        Attempt(
            at=making.NOW - timedelta(minutes=4 - number),
            status=503,
            error="the receiver answered 503: try later",
            took_s=0.21,
        )
        for number in range(row.tries)
    )
    message = Message(
        id=row.id,
        topic=row.topic,
        at=row.created_at,
        about=row.about,
        title=row.title,
        text=f"Job gpt-7b, attempt 2, 512 ranks.\n{row.title}.\nWaiting: ranks 0-4,6-511.",
        url="http://127.0.0.1:8042/incidents/inc-hung",
        incident=None,
    )
    values = {name: getattr(row, name) for name in names}
    return Delivery(**values, attempts=tries, message=message)


async def _test(scene: scenes.Scene, senders: object, tried: Channel, *_: object) -> Trial:
    if tried.kind is ChannelKind.SLACK_BOT:
        return Trial(is_accepted=True, status=200, error="", took_s=0.312)
    return Trial(is_accepted=False, status=410, error=scenes.HOSTILE, took_s=0.1)


async def _standing(scene: scenes.Scene) -> list[Silence]:
    return [] if scene.is_without_alerts else list(SILENCES)


async def _over(scene: scenes.Scene, **_: object) -> tuple[list[Silence], str | None]:
    if scene.is_without_alerts:
        return [], None
    cancelled = replace(_BASE, id="sil-over", cancelled_at=making.NOW - timedelta(hours=5))
    return [cancelled], None
