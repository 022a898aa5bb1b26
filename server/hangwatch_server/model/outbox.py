"""What planning alerts looks at, and what it decides: light rows, read every second."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from hangwatch_server.model.alerts import DeliveryState, Topic
from hangwatch_server.model.words import IncidentState, State


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What matchers of channels and silences look at."""

    job: str  # its name
    job_id: str
    nodes: tuple[str, ...]  # of the culprits
    kind: str
    conditions: tuple[str, ...]  # of the culprits


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A confirmed incident of which there may be something to tell, without its verdict."""

    id: str
    subject: Subject
    state: IncidentState
    confirmed_at: datetime
    ended_at: datetime | None
    end_reason: str
    acknowledged_at: datetime | None
    snoozed_until: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A delivery that exists already, of one incident to one channel."""

    id: str
    channel: str
    about: str
    topic: Topic
    number: int
    state: DeliveryState
    created_at: datetime
    sent_at: datetime | None
    title: str = ""  # where its end repeats it


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A message that must exist now and does not, or one held back that must go out now."""

    channel: str
    topic: Topic
    number: int = 0
    held: str = ""  # why it is held back; "" when it is to be sent
    wakes: str = ""  # id of the delivery that was held back


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenJob:
    """How much of a job that is not over is seen."""

    id: str
    name: str
    state: State
    reporting: int
    world_size: int
