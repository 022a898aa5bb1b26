"""How a server leaves while others stay: it says so, hands its jobs over, then its agents.

In this order nobody is without a server for longer than a reconnect takes: a proxy sends new
connections elsewhere before old ones end, and detection goes on at a server that hears all agents
of this one while they move. A server that is alone has nobody to hand anything to.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Protocol

from hangwatch_agent import wire
from hangwatch_server import logs
from hangwatch_server.ingest import hub
from hangwatch_server.ingest.hub import Connection, Hub
from hangwatch_server.relay import Relay
from hangwatch_server.settings import ServerSettings

# Of a small fleet: more than a reconnect costs the server that it comes to.
LONGEST_PAUSE_S = 0.05
# An agent comes back after so long, and at most twice that: the other servers know by then that
# its connection here has ended, and refuse it no more.
BACK_AFTER_S = 0.5

_log = logs.get()


class Jobs(Protocol):
    """The jobs whose detection this server owns."""

    async def give_up(self) -> None:
        """Hand all of them over now, and own none from now on."""
        ...


class Leaving:
    """One per server; it leaves once."""

    def __init__(
        self,
        settings: ServerSettings,
        hub: Hub,
        relay: Relay,
        jobs: Jobs,
        chance: Callable[[], float] | None = None,
    ) -> None:
        self._settings, self._hub, self._relay, self._jobs = settings, hub, relay, jobs
        self._chance = chance or random.Random().random
        self.is_on = False  # from here on it is not ready for anything new
        self.takes_agents = True

    async def say_goodbye(self) -> None:
        """Until proxies know and, where others stay, jobs and agents are with them.

        Everything is served meanwhile.
        """
        self.is_on = True
        _log.info("server_leaving", agents=len(self._hub.nodes()), drain_s=self._settings.drain_s)
        await asyncio.sleep(self._settings.drain_s)
        if not self._relay.others():
            return
        await self._jobs.give_up()
        self.takes_agents = False
        await self._move_agents()

    def refusal(self) -> wire.Refused:
        """What an agent is told that comes, or is still here, while this server leaves."""
        return hub.going_away(BACK_AFTER_S * (1 + self._chance()))

    async def _move_agents(self) -> None:
        """Each in its turn: all at once they would come to the others at once."""
        nodes = self._hub.nodes()
        if not nodes:
            return
        pause_s = min(self._settings.move_agents_s / len(nodes), LONGEST_PAUSE_S)
        async with asyncio.TaskGroup() as group:
            for node in nodes:
                connection = self._hub.connection(node)
                if connection is not None:
                    group.create_task(self._move(connection))
                await asyncio.sleep(pause_s)
        _log.info("agents_moved", agents=len(nodes))

    async def _move(self, connection: Connection) -> None:
        if self._hub.leave(connection):
            connection.is_leaving = True
            self._relay.moves(connection.node)
            frame = self.refusal()
            await connection.send(frame)
            await connection.close(hub.GOING_AWAY, frame.reason)
