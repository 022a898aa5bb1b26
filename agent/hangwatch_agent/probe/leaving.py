"""Groups that are being destroyed while a collective in them is still open.

torch's tables forget a group at once, but gloo's destructor waits for what is queued, and so for
every rank that has not come to it. Only the recorder still shows that this rank waits. gloo retires
whatever ends, failed calls too, so an open entry there is a wait; NCCL aborts and leaves it open.
"""

from __future__ import annotations

from typing import Any

from . import entries, groups


class Leaving:
    """Remembers the groups of the last beat before the destruction, and asks after them."""

    def __init__(self, source: entries.Entries) -> None:
        self._source = source
        self._groups: list[groups.Group] = []
        self._pace = entries.Pace()
        self._since_ns = 0
        self._is_known = False  # whether the recorder has been asked since

    def remember(self, pairs: list[tuple[Any, groups.Group]], now_ns: int) -> None:
        self._groups = [group for _, group in pairs if group.is_gloo]
        self._since_ns = now_ns
        self._is_known = False

    def pending(self, now_ns: int) -> list[groups.Group]:
        """Those that still hold an open collective; asked as often as in any stall."""
        if self._groups and self._pace.is_due(self._since_ns, now_ns):
            self._groups = self._source.open_among(self._groups, now_ns)
            self._is_known = True
        return self._groups if self._is_known else []
