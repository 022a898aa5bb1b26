"""The bus of one of several servers: what is published here is heard at the others too."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hangwatch_server.bus.memory import DEFAULT_QUEUE, MemoryBus


class RelayedBus(MemoryBus):
    """Implements bus.Bus; `tell` hands an event to the other servers and never blocks."""

    def __init__(
        self, tell: Callable[[str, Mapping[str, str]], None], queue_size: int = DEFAULT_QUEUE
    ) -> None:
        super().__init__(queue_size)
        self._tell = tell

    def publish(self, topic: str, data: Mapping[str, str], *, is_local: bool = False) -> None:
        super().publish(topic, data)
        if not is_local:
            self._tell(topic, data)

    def deliver(self, topic: str, data: Mapping[str, str]) -> None:
        """Hand on an event of another server."""
        super().publish(topic, data)
