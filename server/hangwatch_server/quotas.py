"""Places for calls that stay open or cost much: so many for each caller, so many in all.

Whoever comes when they are taken is told at once to come again, before anything is done. Who a
caller is and what a call does is not known here; one event loop, so nothing is locked.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from hangwatch_server import logs, metrics
from hangwatch_server.errors import TooManyError
from hangwatch_server.settings.calls import CallLimits

AGAIN_S = 5
_log = logs.get()


class Quota:
    """The places of one kind of call; `what` names it in the plural, for people and metrics."""

    def __init__(self, what: str, *, each: int, most: int) -> None:
        self._what, self._each, self._most = what, each, most
        self._open: Counter[str] = Counter()

    @property
    def taken(self) -> int:
        return self._open.total()

    @contextlib.contextmanager
    def place(self, caller: str) -> Iterator[None]:
        """Hold a place; raise TooManyError when the caller, or all together, have too many."""
        if self._open[caller] >= self._each:
            self._refuse(f"'{caller}' has {self._each} {self._what} open, as many as one may")
        if self.taken >= self._most:
            self._refuse(f"{self._most} {self._what} are open, as many as this server allows")
        self._open[caller] += 1
        try:
            yield
        finally:
            self._open[caller] -= 1
            if not self._open[caller]:
                del self._open[caller]

    def _refuse(self, why: str) -> None:
        metrics.calls_refused.labels(self._what).inc()
        _log.info("call_refused", what=self._what, why=why)
        raise TooManyError(
            f"{why}: close some, or ask again in {AGAIN_S} s; an administrator may allow more, see "
            "`hangwatch config`",
            AGAIN_S,
        )


@dataclass(frozen=True, slots=True)
class Quotas:
    """Of each kind of call that is counted."""

    streams: Quota
    waiting: Quota
    bundles: Quota


def of(limits: CallLimits) -> Quotas:
    return Quotas(
        streams=Quota("event streams", each=limits.streams_each, most=limits.streams_most),
        waiting=Quota("waiting calls", each=limits.waiting_each, most=limits.waiting_most),
        bundles=Quota("bundles", each=limits.bundles_each, most=limits.bundles_most),
    )
