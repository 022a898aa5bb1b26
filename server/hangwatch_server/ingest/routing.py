"""The way to a node's agent, wherever it is connected: here, or at another server."""

from __future__ import annotations

from hangwatch_agent import wire
from hangwatch_server.ingest.hub import Hub
from hangwatch_server.relay.base import Relay


class Router:
    """Sends commands to agents."""

    def __init__(self, hub: Hub, relay: Relay) -> None:
        self._hub, self._relay = hub, relay

    async def send(self, node: str, frame: wire.ServerFrame) -> str:
        """Why the agent was not told, in words for people; "" when it was."""
        if not self._hub.has(node):
            return await self._relay.send(node, frame)
        if await self._hub.send(node, frame):
            return ""
        return f"the agent of node '{node}' is not connected"
