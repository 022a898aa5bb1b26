"""What the rest of a server asks of the relay; the same for a single server and for one of many."""

from __future__ import annotations

from typing import Protocol

from hangwatch_agent import wire


class Relay(Protocol):
    """Tells other servers of this one's agents. What is told is never waited for."""

    def joined(self, node: str) -> None:
        """An agent has said hello here, and the board knows it."""
        ...

    def beat(self, node: str, data: bytes) -> None:
        """A heartbeat as it came from an agent of this server, once the board has taken it."""
        ...

    def part(self, node: str, part: wire.CapturePart) -> None:
        """A part of a capture that is durable now."""
        ...

    def looks(self, node: str, samples: wire.Samples) -> None:
        """An agent's own looks at its ranks."""
        ...

    def left(self, node: str) -> None:
        """The connection of an agent of this server has ended."""
        ...

    def moves(self, node: str) -> None:
        """An agent of this server was asked to connect to another one, and will in a moment."""
        ...

    def others(self) -> bool:
        """Whether another server is heard now."""
        ...

    async def holder(self, node: str) -> str:
        """The other server that holds a live connection of this node; "" where none does."""
        ...

    async def send(self, node: str, frame: wire.ServerFrame) -> str:
        """Have the server that holds a node's connection send a command; "" or why it was not."""
        ...

    def is_new(self) -> bool:
        """Whether this server has just started, and what the others know has not come yet."""
        ...

    def missing(self) -> str:
        """What is not heard now, in words for people; "" while everything is."""
        ...
