"""Cursors of list queries: an opaque text that holds the sort key of the last row of a page.

A cursor names a position, not an offset, so rows that arrive or go between two pages neither repeat
nor hide others.
"""

from __future__ import annotations

import base64
import binascii
from datetime import datetime

from sqlalchemy import ColumnElement, and_, or_

from hangwatch_server.errors import BadCursorError

MAX_LIMIT = 500


def cursor(at: datetime, key: str) -> str:
    return base64.urlsafe_b64encode(f"{at.isoformat()} {key}".encode()).decode().rstrip("=")


def position(text: str) -> tuple[datetime, str]:
    """The sort key in a cursor; raise BadCursorError for anything that `cursor` did not make."""
    try:
        padded = text + "=" * (-len(text) % 4)
        at, _, key = base64.urlsafe_b64decode(padded.encode()).decode().partition(" ")
        moment = datetime.fromisoformat(at)
    except (ValueError, binascii.Error) as error:
        raise BadCursorError(text) from error
    if moment.tzinfo is None or not key or "\0" in key:
        raise BadCursorError(text)
    return moment, key


def is_before(
    at: ColumnElement[datetime], key: ColumnElement[str], text: str
) -> ColumnElement[bool]:
    """Rows after the cursor in a list sorted by (at, key) descending."""
    moment, last = position(text)
    return or_(at < moment, and_(at == moment, key < last))


def bounded(limit: int) -> int:
    return max(1, min(limit, MAX_LIMIT))
