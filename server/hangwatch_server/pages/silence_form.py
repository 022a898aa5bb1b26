"""The form of a silence: what it shows, and what its fields ask for. No requests here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from starlette.datastructures import FormData

from hangwatch_server import durations
from hangwatch_server.errors import HangwatchError
from hangwatch_server.model.alerts import Repeat, Silence
from hangwatch_server.pages import channel_form

LONGEST_S = 90 * 86400.0
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


class BadSilenceError(HangwatchError):
    """What was given for a silence cannot be one; the text says why."""


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


def silence(draft: Draft, by: str, now: datetime) -> Silence:
    """As the form asks for; raise HangwatchError for what cannot be."""
    if not draft.matchers:
        raise BadSilenceError(
            "a silence says what it holds back: give at least one pattern, * for every job"
        )
    length_s = durations.seconds(draft.length, longest_s=LONGEST_S)
    if length_s < 1:
        raise BadSilenceError("a silence lasts at least a second")
    starts_at = _start(draft.starts, now)
    ends_at = starts_at + timedelta(seconds=length_s)
    if draft.repeat not in set(Repeat):
        raise BadSilenceError("a silence comes once, every day or every week")
    if ends_at <= now and draft.repeat == Repeat.ONCE:
        raise BadSilenceError("this silence would be over already: times are in UTC")
    if len(draft.comment) > MAX_COMMENT_CHARS:
        raise BadSilenceError(f"the comment has at most {MAX_COMMENT_CHARS} letters")
    return Silence(
        id="",
        matchers=channel_form.matchers_of(draft.matchers),
        starts_at=starts_at,
        ends_at=ends_at,
        repeat=Repeat(draft.repeat),
        created_at=now,
        created_by=by,
        comment=draft.comment,
    )


def _start(text: str, now: datetime) -> datetime:
    if not text:
        return now
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:
        raise BadSilenceError("the beginning is a date and a time, in UTC") from None
