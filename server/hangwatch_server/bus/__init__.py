"""Tells whoever listens that something changed: a topic and a few words of data, never the state.

Nothing durable travels here. A listener that missed an event reads the state again.
"""

from hangwatch_server.bus.base import Bus, Event, Subscription
from hangwatch_server.bus.memory import MemoryBus
from hangwatch_server.bus.relayed import RelayedBus

__all__ = ["Bus", "Event", "MemoryBus", "RelayedBus", "Subscription"]
