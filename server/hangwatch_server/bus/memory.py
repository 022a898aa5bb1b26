"""The bus of a single server process: a bounded queue per subscriber, oldest events dropped."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Self
from weakref import WeakSet

from hangwatch_server import metrics
from hangwatch_server.bus.base import Event

DEFAULT_QUEUE = 256


class MemorySubscription:
    """Implements bus.Subscription for MemoryBus."""

    def __init__(self, size: int) -> None:
        self.dropped = 0
        self._events: deque[Event] = deque(maxlen=size)
        self._wake = asyncio.Event()
        self.is_closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while not self._events:
            if self.is_closed:
                raise StopAsyncIteration
            self._wake.clear()
            await self._wake.wait()
        return self._events.popleft()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    async def next(self, timeout_s: float) -> Event | None:
        """The next event; None when `timeout_s` passed without one or the bus was closed."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self.__anext__()
        except (TimeoutError, StopAsyncIteration):
            return None

    def skip(self) -> None:
        self._events.clear()

    def close(self) -> None:
        self.is_closed = True
        self._wake.set()

    def push(self, event: Event) -> None:
        """Take an event from the bus; called by MemoryBus alone."""
        if self.is_closed:
            return
        if len(self._events) == self._events.maxlen:
            self.dropped += 1
            metrics.bus_events_dropped.inc()
        self._events.append(event)
        self._wake.set()


class MemoryBus:
    """Implements bus.Bus within one event loop."""

    def __init__(self, queue_size: int = DEFAULT_QUEUE) -> None:
        self._queue_size = queue_size
        self._number = 0
        # Weak: a page that went away without closing its subscription must not be fed for ever.
        self._topics: dict[str, WeakSet[MemorySubscription]] = {}

    def publish(self, topic: str, data: Mapping[str, str], *, is_local: bool = False) -> None:
        self._number += 1
        subscriptions = self._topics.get(topic)
        if subscriptions is None:
            return
        event = Event(topic, data, self._number)
        for subscription in list(subscriptions):
            if subscription.is_closed:
                subscriptions.discard(subscription)
            subscription.push(event)
        if not subscriptions:
            del self._topics[topic]

    def subscribe(self, topics: Iterable[str]) -> MemorySubscription:
        subscription = MemorySubscription(self._queue_size)
        for topic in topics:
            self._topics.setdefault(topic, WeakSet()).add(subscription)
        return subscription

    def close(self) -> None:
        for subscriptions in self._topics.values():
            for subscription in list(subscriptions):
                subscription.close()
