"""What buses the tests of the bus's contract are run on. No assertions here."""

from __future__ import annotations

from collections.abc import Callable

from hangwatch_server.bus import Bus, MemoryBus
from hangwatch_server.bus.memory import DEFAULT_QUEUE


class Maker:
    """See the same tests over Redis."""

    make: Callable[[int], Bus] = MemoryBus


def new_bus(queue_size: int = DEFAULT_QUEUE) -> Bus:
    return Maker.make(queue_size)
