"""Commands for agents that are connected to another server: there and back, within a time."""

from __future__ import annotations

import asyncio
import secrets

from hangwatch_agent import wire
from hangwatch_server import logs
from hangwatch_server.ingest.hub import SEND_TIMEOUT_S, Hub
from hangwatch_server.relay import letters
from hangwatch_server.relay.letters import Answer, Command, LetterError
from hangwatch_server.relay.line import Line, RelayError

ANSWER_S = SEND_TIMEOUT_S + 1.0  # the other server gives up after the first part of it
MOST_AT_ONCE = 256

_log = logs.get()


class Commands:
    """Sends commands to other servers, and carries theirs out."""

    def __init__(self, replica: str, line: Line, hub: Hub) -> None:
        self._replica, self._line, self._hub = replica, line, hub
        self._waiting: dict[str, asyncio.Future[str]] = {}
        self._errands: set[asyncio.Task[None]] = set()

    async def send(self, replica: str, node: str, frame: wire.ServerFrame) -> str:
        """Why the agent was not told; "" when it was."""
        command = Command(self._replica, secrets.token_hex(8), node, wire.encode(frame))
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting[command.id] = answer
        try:
            count, *_ = await self._line.publish([(f"to:{replica}", letters.encode(command))])
            if not count:
                return f"the server that held the connection of node '{node}' is gone"
            async with asyncio.timeout(ANSWER_S):
                return await answer
        except RelayError as error:
            return f"node '{node}' is connected to another server, and Redis is away ({error})"
        except TimeoutError:
            return f"the server that holds the connection of node '{node}' did not answer"
        finally:
            self._waiting.pop(command.id, None)

    def take(self, note: Command | Answer) -> None:
        """Carry out a command beside everything else, or take in how one of ours went."""
        if isinstance(note, Answer):
            waiting = self._waiting.get(note.id)
            if waiting is not None and not waiting.done():
                waiting.set_result(note.why_not)
        elif len(self._errands) < MOST_AT_ONCE:
            errand = asyncio.create_task(self._obey(note))
            self._errands.add(errand)
            errand.add_done_callback(self._errands.discard)

    async def _obey(self, command: Command) -> None:
        try:
            frame = letters.command(command.frame)
            is_sent = await self._hub.send(command.node, frame)
            why_not = "" if is_sent else f"the agent of node '{command.node}' is not connected"
        except LetterError as error:
            why_not = str(error)
        answer = letters.encode(Answer(command.id, why_not))
        try:
            await self._line.publish([(f"to:{command.replica}", answer)])
        except RelayError as error:
            _log.info("answer_not_sent", node=command.node, error=str(error))
