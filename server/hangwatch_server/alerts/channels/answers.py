"""What an HTTP answer means for a message, where a kind knows nothing better."""

from __future__ import annotations

from collections.abc import Awaitable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from hangwatch_server.alerts.channels.base import Accepted, Outcome, Refused, TryAgain
from hangwatch_server.alerts.guard import NotAllowedError
from hangwatch_server.alerts.outgoing import Answer, UnreachableError

_SHOWN_CHARS = 200


async def of_request(request: Awaitable[Answer]) -> Answer | TryAgain:
    """The answer, or what its absence means: an address that may not be asked can be allowed, and
    a resolver that errs for a while must cost no alert."""
    try:
        return await request
    except (NotAllowedError, UnreachableError) as error:
        return TryAgain(error=str(error))


def outcome(answer: Answer) -> Outcome:
    """As Standard Webhooks say: 2xx is success, 410 the end, everything else a failure to retry.

    Also 400, 401, 403 and 404: behind them stands most often a receiver that is being deployed or
    a key that is being changed, and the retries end soon enough where it is not.
    """
    if answer.is_accepted:
        return Accepted(status=answer.status)
    told = words(answer)
    if answer.status == 410:
        return Refused(error=told, status=410, is_gone=True)
    return TryAgain(error=told, status=answer.status, after_s=after_s(answer))


def words(answer: Answer) -> str:
    """`the receiver answered 503: try later`."""
    if 300 <= answer.status < 400:
        where = answer.headers.get("location", "")[:_SHOWN_CHARS]
        return (
            f"the receiver answered {answer.status}, a redirect to {where or 'nowhere'}: redirects "
            "are not followed, so give the channel the final address"
        )
    said = " ".join(answer.text.split())
    said = f": {said[:_SHOWN_CHARS]}" if said else ""
    return f"the receiver answered {answer.status}{said}"


def after_s(answer: Answer) -> float | None:
    """How long the receiver asks to be left alone: `Retry-After` in seconds or as a date."""
    text = answer.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        at = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    # A wall time of the receiver's against ours, since the header has no other form for a date.
    return max(0.0, (at - datetime.now(UTC)).total_seconds())
