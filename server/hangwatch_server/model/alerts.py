"""What people are told and where it goes: channels, messages, deliveries and silences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from hangwatch_server.model.records import Incident


class Topic(StrEnum):
    """Why a message is sent; a channel subscribes to topics."""

    OPENED = "opened"  # an incident is confirmed and has settled
    REMINDER = "reminder"  # it still stands and nobody has acknowledged it
    ACKNOWLEDGED = "acknowledged"
    RESOLVED = "resolved"
    SLOW = "slow"  # a straggler: a notice, only for those who ask for it
    BLIND = "blind"  # the monitor itself sees too little to judge
    SIGHTED = "sighted"  # it sees again
    TEST = "test"  # somebody pressed the button


class ChannelKind(StrEnum):
    """How a channel is spoken to."""

    WEBHOOK = "webhook"  # signed as Standard Webhooks say
    SLACK_WEBHOOK = "slack_webhook"  # an incoming webhook: each message is a new one
    SLACK_BOT = "slack_bot"  # a bot token: the first message is edited, the rest is its thread
    ALERTMANAGER = "alertmanager"
    PAGERDUTY = "pagerduty"
    APPRISE = "apprise"  # Teams, Discord, email and the other services of that library


class MatchField(StrEnum):
    """What of an incident a matcher looks at."""

    JOB = "job"
    NODE = "node"  # any of the culprits' nodes
    KIND = "kind"
    CONDITION = "condition"  # of any culprit


class Repeat(StrEnum):
    """How often a planned silence comes again."""

    ONCE = "once"
    DAILY = "daily"
    WEEKLY = "weekly"


class DeliveryState(StrEnum):
    """Where one message to one channel stands."""

    PENDING = "pending"  # to be sent at `next_at`, for the first time or again
    SENT = "sent"
    SILENCED = "silenced"  # by a silence, a snooze, or its own early end; `reason` says which
    FAILED = "failed"  # given up


@dataclass(frozen=True, slots=True, kw_only=True)
class Matcher:
    """One condition on an incident: a pattern of `*` and `?`, upper and lower case apart."""

    field: MatchField
    pattern: str  # "gpt-*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """Where alerts go. Its secrets are not part of it: the sender alone reads them."""

    id: str
    name: str
    kind: ChannelKind
    options: Mapping[str, str]  # what may be shown: a Slack channel's name, a severity
    secret_names: tuple[str, ...]  # which secrets are set: "url", "token", "signing_key"
    topics: tuple[Topic, ...]
    matchers: tuple[Matcher, ...]  # all must match; none matches every incident
    after_s: float  # told only of what nobody acknowledged for so long: an escalation
    remind_s: float  # between reminders; 0 for none
    is_enabled: bool
    disabled_reason: str  # "the receiver answered 410 Gone"
    created_at: datetime
    created_by: str
    target: str = ""  # where it goes, as lists show it: a host, never a secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """No alarm is raised of what matches while it lasts; planned ahead it is a maintenance window.

    Of an alarm raised before, acknowledgement and end are still told: no page is left open by it.
    """

    id: str
    matchers: tuple[Matcher, ...]
    starts_at: datetime
    ends_at: datetime  # of its first occurrence when it repeats
    repeat: Repeat
    created_at: datetime
    created_by: str
    comment: str
    cancelled_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What is said, the same whatever the channel and however often it is tried."""

    id: str  # "msg_…", stable: receivers tell a repetition by it
    topic: Topic
    at: datetime  # when it became due
    about: str  # "incident:ID", "monitor:…": what belongs to one thread
    title: str  # one line, the culprit first
    text: str  # plain, a few lines
    url: str  # of the page where somebody can do something about it
    incident: Incident | None  # as it was then; None for what is not about one
    stack: tuple[str, ...] = ()  # of the first culprit, innermost first: "train.py:88 in load"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One try to send a message, for the delivery log."""

    at: datetime
    status: int | None  # of HTTP, where an answer came
    error: str  # "" when it was accepted
    took_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverySummary:
    """One message to one channel, as lists show it."""

    id: str  # that of its message
    channel: str
    channel_name: str
    topic: Topic
    number: int  # of a reminder: 1, 2, …; 0 for all else
    about: str
    incident: str | None
    title: str
    state: DeliveryState
    reason: str  # why it is silenced, failed or tried again; "" otherwise
    tries: int
    created_at: datetime
    next_at: datetime | None  # of its next try, while pending
    sent_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery(DeliverySummary):
    """One message to one channel, how each try went, and what it says."""

    attempts: tuple[Attempt, ...]  # oldest first
    message: Message


class BlindCause(StrEnum):
    """Why the monitor cannot judge."""

    NO_AGENT = "no_agent"  # jobs ran, and no agent is heard
    COVERAGE = "coverage"  # too few ranks of a job report
    SERVER = "server"  # a task of the server itself keeps failing
    DATABASE = "database"  # the database was away; known only afterwards


@dataclass(frozen=True, slots=True, kw_only=True)
class BlindSpell:
    """A time in which the monitor saw too little to judge: nothing it said then counts."""

    id: str
    cause: BlindCause
    subject: str  # id of the job, name of the server, or ""
    job_name: str  # "" where it is about more than one job
    text: str
    began_at: datetime
    ended_at: datetime | None
    end_reason: str = ""  # why nothing is waited for any more; "" where it sees again
