"""The small interface behind which events travel, ready for a shared bus beside that in memory.

Topics: "jobs", "job:<id>", "verdict:<id>" (its index has risen), "incident:<id>", "capture:<id>",
"nodes".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, Self


@dataclass(frozen=True, slots=True)
class Event:
    """Something under `topic` changed; `data` names it, for example {"job": "ab12…"}."""

    topic: str
    data: Mapping[str, str]
    number: int  # rises with each event of this bus


class Subscription(Protocol):
    """Events of some topics from the moment of subscribing; a context manager that unsubscribes."""

    dropped: int  # events lost because this subscriber was too slow

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> Event: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc_info: object) -> None: ...

    async def next(self, timeout_s: float) -> Event | None:
        """The next event, or None when `timeout_s` passed without one."""
        ...

    def skip(self) -> None:
        """Drop the events that wait, for whoever is about to read the state anyway."""
        ...

    def close(self) -> None:
        """Stop receiving; whoever iterates gets StopAsyncIteration. May be called twice."""
        ...


class Bus(Protocol):
    def publish(self, topic: str, data: Mapping[str, str], *, is_local: bool = False) -> None:
        """Hand an event to every subscriber of `topic`; never blocks, never fails.

        `is_local`: every server finds this out by itself, so the others need not hear of it.
        """
        ...

    def subscribe(self, topics: Iterable[str]) -> Subscription:
        """Receive events of these topics from now on."""
        ...

    def close(self) -> None:
        """End every subscription: the server is about to stop."""
        ...
