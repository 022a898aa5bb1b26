"""A hang, a channel and a silence for tests of planning, which reads no database."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hangwatch_server.alerts.planning import Rules
from hangwatch_server.model import IncidentState
from hangwatch_server.model.alerts import (
    Channel,
    ChannelKind,
    Matcher,
    MatchField,
    Repeat,
    Silence,
    Topic,
)
from hangwatch_server.model.outbox import Case, Subject

START = datetime(2026, 11, 20, 18, 0, tzinfo=UTC)
SETTLE_S = 10.0
RULES = Rules(settle_s=SETTLE_S)
REMIND_S = 300.0
ALL = (Topic.OPENED, Topic.REMINDER, Topic.ACKNOWLEDGED, Topic.RESOLVED)
SUBJECT = Subject(
    job="gpt-7b",
    job_id="b3f1",
    nodes=("node-b",),
    kind="missing_ranks",
    conditions=("in_dataloader",),
)
CASE = Case(
    id="i1",
    subject=SUBJECT,
    state=IncidentState.CONFIRMED,
    confirmed_at=START,
    ended_at=None,
    end_reason="",
    acknowledged_at=None,
    snoozed_until=None,
)


def channel(name: str = "c1", **changes: object) -> Channel:
    found = Channel(
        id=name,
        name=name,
        kind=ChannelKind.WEBHOOK,
        options={},
        secret_names=(),
        topics=ALL,
        matchers=(),
        after_s=0.0,
        remind_s=REMIND_S,
        is_enabled=True,
        disabled_reason="",
        created_at=START - timedelta(days=1),
        created_by="ops",
    )
    return replace(found, **changes)  # type: ignore[arg-type]


def silence(start: datetime, seconds: float) -> Silence:
    return Silence(
        id="s1",
        matchers=(Matcher(field=MatchField.JOB, pattern="gpt-*"),),
        starts_at=start,
        ends_at=start + timedelta(seconds=seconds),
        repeat=Repeat.ONCE,
        created_at=start,
        created_by="ada",
        comment="",
    )
