"""What people do about alerts: silence, cancel a silence, send again; each of it audited.

The pages and the API do the same by these functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from hangwatch_server.db import audit, deliveries
from hangwatch_server.db import silences as silence_rows
from hangwatch_server.db.engine import Database
from hangwatch_server.errors import ConflictError, HangwatchError, NotFoundError
from hangwatch_server.model.alerts import Delivery, Matcher, Repeat, Silence

MAX_MATCHERS = 20
LONGEST = timedelta(days=90)
_PERIODS = {Repeat.DAILY: timedelta(days=1), Repeat.WEEKLY: timedelta(weeks=1)}


class BadSilenceError(HangwatchError):
    """A silence that would hold back nothing, or all for ever."""


async def silence(
    db: Database,
    by: str,
    *,
    matchers: Sequence[Matcher],
    ends_at: datetime,
    starts_at: datetime | None = None,
    repeat: Repeat = Repeat.ONCE,
    comment: str = "",
) -> Silence:
    """Hold back alarms of what matches; raise BadSilenceError with what to write instead."""
    now = datetime.now(UTC)
    wanted = Silence(
        id="",
        matchers=tuple(matchers),
        starts_at=(starts_at or now).astimezone(UTC),
        ends_at=ends_at.astimezone(UTC),
        repeat=repeat,
        created_at=now,
        created_by=by,
        comment=comment,
    )
    check(wanted, now)
    if await silence_rows.count_standing(db) >= silence_rows.MAX_STANDING:
        raise ConflictError(
            f"there are {silence_rows.MAX_STANDING} silences that are not over: cancel some first"
        )
    made = await silence_rows.create(db, wanted)
    await audit.record(db, by, "silence.create", f"silence:{made.id}", describe(made))
    return made


def check(silence: Silence, now: datetime) -> None:
    """Raise BadSilenceError unless it can hold back something, and not all for ever."""
    length = silence.ends_at - silence.starts_at
    period = _PERIODS.get(silence.repeat)
    if not silence.matchers:
        raise BadSilenceError("a silence needs a matcher: for all jobs write job = *")
    if len(silence.matchers) > MAX_MATCHERS:
        raise BadSilenceError(f"a silence has at most {MAX_MATCHERS} matchers")
    if length <= timedelta(0):
        raise BadSilenceError("a silence ends after it starts")
    if period is None and silence.ends_at <= now:
        raise BadSilenceError("this silence is over already: choose an end in the future")
    if period is not None and length > period:
        raise BadSilenceError(
            f"a {silence.repeat} silence is at most {period.days * 24} hours long: it would never "
            "be off"
        )
    if length > LONGEST:
        raise BadSilenceError(f"a silence is at most {LONGEST.days} days long")


async def cancel(db: Database, by: str, silence_id: str) -> Silence:
    """Alarms of what it held back, and what still stands, go out at once."""
    found = await silence_rows.cancel(db, silence_id)
    if found is None:
        raise unknown_silence(silence_id)
    await audit.record(db, by, "silence.cancel", f"silence:{silence_id}", describe(found))
    return found


async def redeliver(db: Database, by: str, delivery_id: str) -> Delivery:
    found = await deliveries.redeliver(db, delivery_id)
    detail = f"{found.topic} to {found.channel_name}"
    await audit.record(db, by, "delivery.redeliver", f"delivery:{delivery_id}", detail)
    return found


def unknown_silence(silence_id: str) -> NotFoundError:
    return NotFoundError(
        f"silence '{silence_id}' is not known: list them with GET /api/v1/silences"
    )


def describe(silence: Silence) -> str:
    """`job=gpt-* node=node-b, 2026-11-20 18:00 to 20:00 UTC, daily`."""
    what = " ".join(f"{matcher.field}={matcher.pattern}" for matcher in silence.matchers)
    is_one_day = silence.starts_at.date() == silence.ends_at.date()
    end = f"{silence.ends_at:%H:%M}" if is_one_day else f"{silence.ends_at:%Y-%m-%d %H:%M}"
    repeat = "" if silence.repeat is Repeat.ONCE else f", {silence.repeat}"
    return f"{what}, {silence.starts_at:%Y-%m-%d %H:%M} to {end} UTC{repeat}"
