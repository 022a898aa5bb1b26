"""The form of a silence: what it shows, and what its fields ask for. No requests here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from starlette.datastructures import FormData

from hangwatch_server import durations
from hangwatch_server.alerts import people
from hangwatch_server.model.alerts import Matcher, Repeat
from hangwatch_server.pages import channel_form

MAX_COMMENT_CHARS = 500
LENGTHS = {
    "1h": "1 hour",
    "4h": "4 hours",
    "8h": "8 hours",
    "1d": "1 day",
    "3d": "3 days",
    "7d": "7 days",
    "30d": "30 days",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What stands in the form, right or not."""

    matchers: tuple[tuple[str, str], ...] = ()
    starts: str = ""  # a local time without zone, taken as UTC; "" for now
    length: str = "1h"
    repeat: str = Repeat.ONCE.value
    comment: str = ""

    @property
    def rows(self) -> tuple[tuple[str, str], ...]:
        """The matchers, and room for more."""
        return channel_form.with_spare(self.matchers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A silence as the form asks for it; whether it makes sense, `alerts.people` says."""

    matchers: tuple[Matcher, ...]
    starts_at: datetime
    ends_at: datetime
    repeat: Repeat
    comment: str


def read(form: FormData) -> Draft:
    def text(name: str) -> str:
        value = form.get(name, "")
        return value.strip() if isinstance(value, str) else ""

    return Draft(
        matchers=channel_form.read_matchers(form),
        starts=text("starts"),
        length=text("length"),
        repeat=text("repeat") or Repeat.ONCE.value,
        comment=text("comment"),
    )


def wanted(draft: Draft, now: datetime) -> Wanted:
    """What the form asks for; raise HangwatchError for what cannot be read."""
    if draft.repeat not in set(Repeat):
        raise people.BadSilenceError("a silence comes once, every day or every week")
    if len(draft.comment) > MAX_COMMENT_CHARS or "\0" in draft.comment:
        raise people.BadSilenceError(f"the comment has at most {MAX_COMMENT_CHARS} letters")
    length_s = durations.seconds(draft.length, longest_s=people.LONGEST.total_seconds())
    starts_at = _start(draft.starts, now)
    return Wanted(
        matchers=channel_form.matchers_of(draft.matchers),
        starts_at=starts_at,
        ends_at=starts_at + timedelta(seconds=length_s),
        repeat=Repeat(draft.repeat),
        comment=draft.comment,
    )


def _start(text: str, now: datetime) -> datetime:
    if not text:
        return now
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:
        raise people.BadSilenceError("the beginning is a date and a time, in UTC") from None
