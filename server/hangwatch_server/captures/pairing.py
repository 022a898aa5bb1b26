"""Which of two captures say something beside each other."""

from __future__ import annotations

from collections.abc import Iterable

from hangwatch_server import ranges
from hangwatch_server.model import Capture

# A capture asked for this long before another one says little of what moves now.
COMPARED_WITHIN_S = 3600.0


def before(capture: Capture, earlier: Iterable[Capture]) -> Capture | None:
    """The newest capture of the same attempt with a rank in common; `earlier` come newest first."""
    own: frozenset[int] | None = None
    for other in earlier:
        age_s = (capture.requested_at - other.requested_at).total_seconds()
        if other.attempt != capture.attempt or age_s > COMPARED_WITHIN_S:
            return None
        if other.ranks == capture.ranks:
            return other
        own = frozenset(ranges.parse(capture.ranks)) if own is None else own
        if not own.isdisjoint(ranges.parse(other.ranks)):
            return other
    return None
