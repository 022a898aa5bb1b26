"""The relay of a single server: there is nobody to tell."""

from __future__ import annotations

from hangwatch_agent import wire


class Alone:
    """Implements relay.Relay."""

    def joined(self, node: str) -> None:
        return

    def beat(self, node: str, data: bytes) -> None:
        return

    def part(self, node: str, part: wire.CapturePart) -> None:
        return

    def looks(self, node: str, samples: wire.Samples) -> None:
        return

    def left(self, node: str) -> None:
        return

    def moves(self, node: str) -> None:
        return

    def others(self) -> bool:
        return False

    async def holder(self, node: str) -> str:
        return ""

    async def send(self, node: str, frame: wire.ServerFrame) -> str:
        return f"the agent of node '{node}' is not connected"

    def is_new(self) -> bool:
        return False

    def missing(self) -> str:
        return ""
