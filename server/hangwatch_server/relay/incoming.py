"""What other servers tell, brought to board, bus and captures as if it had been said here."""

from __future__ import annotations

from typing import Protocol

import msgspec

from hangwatch_agent import wire
from hangwatch_server import logs, metrics
from hangwatch_server.board import RelayedBoard
from hangwatch_server.bus import RelayedBus
from hangwatch_server.clock import Clock
from hangwatch_server.ingest import hub
from hangwatch_server.ingest.hub import HALF_DEAD_S, Hub
from hangwatch_server.relay import letters
from hangwatch_server.relay.letters import Letter, LetterError
from hangwatch_server.relay.outbox import Outbox
from hangwatch_server.relay.peers import Peer, Peers

NEARLY_S = 2.0

_log = logs.get()


class PartTaker(Protocol):
    """Who wants captures that came in elsewhere."""

    async def arrived(self, node: str, part: wire.CapturePart, now_s: float) -> None: ...

    def sampled(self, node: str, frame: wire.Samples) -> None: ...


class Incoming:
    """Takes letters in the order in which they were written."""

    def __init__(
        self,
        replica: str,
        peers: Peers,
        outbox: Outbox,
        board: RelayedBoard,
        bus: RelayedBus,
        hub: Hub,
        clock: Clock,
    ) -> None:
        self._replica = replica
        self._peers, self._outbox, self._board = peers, outbox, board
        self._bus, self._hub, self._clock = bus, hub, clock
        self.captures: PartTaker | None = None  # once it is made: it is told to ask through us

    async def take(self, peer: Peer, data: msgspec.Raw) -> bool:
        """False where something must have been missed before this letter."""
        now_s = self._clock.monotonic_s()
        try:
            letter = letters.letter(data)
            return await self._take(peer, letter, now_s)
        except LetterError as error:
            metrics.letters_refused.inc()
            _log.debug("letter_skipped", replica=peer.replica, error=str(error))
            return True
        except Exception:
            # The boundary of a letter: those behind it are taken, and what it held is asked for.
            metrics.letters_refused.inc()
            _log.exception("letter_failed", replica=peer.replica)
            return False

    async def _take(self, peer: Peer, letter: Letter, now_s: float) -> bool:
        match letter:
            case letters.Beat():
                return await self._hub.turns.take(lambda: self._beat(peer, letter))
            case letters.Joined():
                await self._joined(peer, letter, now_s)
            case letters.Left():
                self.left(peer.replica, letter.node, is_moving=letter.is_moving)
            case letters.Changed():
                self._bus.deliver(letter.topic, letter.data)
            case letters.Whole():
                for node in self._peers.whole(peer.replica, letter.nodes, letter.since):
                    self.left(peer.replica, node)
            case letters.Part():
                await self._part(letter, now_s)
            case letters.Looks():
                self._looks(letter)
        return True

    def left(self, replica: str, node: str, *, is_moving: bool = False) -> None:
        """A node's connection at that server has ended; one that moves is on its way to another."""
        if self._peers.holder(node) != replica:
            return
        if is_moving:
            # It is as live as before, until it is late.
            self._peers.moves(node, self._clock.monotonic_s())
            return
        self._peers.drops(node)
        if not self._hub.has(node):
            self._board.disconnected(node, self._clock.monotonic_s())
        self._bus.deliver("nodes", {"node": node})

    async def _joined(self, peer: Peer, letter: letters.Joined, now_s: float) -> None:
        own = self._hub.connection(letter.node)
        if own is not None:
            is_alive = now_s - own.heard_s <= HALF_DEAD_S
            older_s = now_s - own.since_s - letter.connected_s - letter.age_s
            if is_alive and older_s > self._yields_s(peer):
                return  # they hear of ours, and close theirs
            self._hub.leave(own)
            self._outbox.put(letters.Left(letter.node))
            await own.refuse(hub.duplicate(letter.node))
        known = self._peers.holder(letter.node) == peer.replica
        self._peers.holds(peer.replica, letter.node)
        hello = letters.hello(letter.hello)
        self._board.hello(letter.node, hello, now_s - letter.age_s, letter.clock_ahead_s)
        if not known:
            self._bus.deliver("nodes", {"node": letter.node})

    def _yields_s(self, peer: Peer) -> float:
        """How much older our connection of a node must be than that of this server, to stay.

        Neither knows how long a message was under way: of two connections that are about as old,
        both servers would keep theirs. So one of the two yields more than that.
        """
        return -NEARLY_S if self._replica < peer.replica else 2 * NEARLY_S

    def _beat(self, peer: Peer, letter: letters.Beat) -> bool:
        if self._peers.holder(letter.node) != peer.replica or not self._board.has(letter.node):
            return self._hub.has(letter.node)
        if not self._hub.has(letter.node):
            heartbeat = letters.heartbeat(letter.frame)
            now_s = self._clock.monotonic_s()
            self._board.apply(letter.node, heartbeat, now_s - letter.age_s)
            metrics.frames_relayed.inc()
        return True

    async def _part(self, letter: letters.Part, now_s: float) -> None:
        part = letters.part(letter.frame)
        if self.captures is not None:
            older = msgspec.structs.replace(part, age_s=part.age_s + letter.age_s)
            await self.captures.arrived(letter.node, older, now_s)

    def _looks(self, letter: letters.Looks) -> None:
        samples = letters.samples(letter.frame)
        older = [
            msgspec.structs.replace(part, age_s=part.age_s + letter.age_s) for part in samples.parts
        ]
        if self.captures is not None:
            self.captures.sampled(letter.node, wire.Samples(parts=tuple(older)))
