"""The server's errors. Each text says what failed, the likely cause, and the next command."""

from __future__ import annotations


class HangwatchError(Exception):
    """Base of everything that Hangwatch raises on purpose; `str()` is fit to show to a user."""


class BadRangeError(HangwatchError):
    """Rank text that cannot be read."""

    def __init__(self, part: str) -> None:
        shown = part if len(part) <= 40 else part[:40] + "…"
        super().__init__(
            f"'{shown}' is not a rank range: write ranks as 0-3,7,9-511, with a step as in 0-1016:8"
        )


class BadCursorError(HangwatchError):
    """A paging cursor that this server did not make."""

    def __init__(self, text: str) -> None:
        shown = text if len(text) <= 40 else text[:40] + "…"
        super().__init__(
            f"'{shown}' is no cursor of this list: take `next` of the page before, or none"
        )


class NotFoundError(HangwatchError):
    """A job, rank, group, capture, incident or node that is not known."""


class ConflictError(HangwatchError):
    """The request contradicts the present state."""


class AnswerNotKeptError(ConflictError):
    """It was done under this key before, and its answer held a secret that is kept nowhere."""


class KeyReusedError(HangwatchError):
    """An idempotency key that was given to another request before."""


class TooManyError(HangwatchError):
    """The caller, or all together, ask too often or for too much at a time."""

    def __init__(self, text: str, retry_after_s: float) -> None:
        super().__init__(text)
        self.retry_after_s = retry_after_s


class StaleLeaseError(HangwatchError):
    """A write came from a replica that no longer owns the job's detection; nothing was written."""


class DataFolderError(HangwatchError):
    """The data folder is in use, unreachable or of another Postgres version."""


class DatabaseError(HangwatchError):
    """The database cannot be reached or has a schema that this version cannot use."""


class NotWrittenError(DatabaseError):
    """The database answers and takes no writes: it is read-only, or its disk is full."""
