"""The relay of one of several servers: tells, listens, and knows what it does not hear."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hangwatch_agent import wire
from hangwatch_server import logs, metrics
from hangwatch_server.board import RelayedBoard
from hangwatch_server.clock import Clock
from hangwatch_server.ingest.hub import HALF_DEAD_S, Hub
from hangwatch_server.relay import letters
from hangwatch_server.relay.commands import Commands
from hangwatch_server.relay.incoming import Incoming
from hangwatch_server.relay.letters import Call, LetterError, Want
from hangwatch_server.relay.line import Ears, Line, RelayError
from hangwatch_server.relay.outbox import BATCH_BYTES, Outbox
from hangwatch_server.relay.peers import Peer, Peers
from hangwatch_server.relay.presence import Presence

CALLS = "calls"  # the channel that everybody hears
CALL_EVERY_S = 0.5
FLUSH_S = 0.05
STALLED_S = 1.0  # this server itself did nothing for so long: it has not listened either
RETRY_S = 0.5
STEADY_S = 1.0  # every other server has called twice by then, and each job was looked at
NEW_S = 10.0  # past this, a server that hears nobody is of more use than none
STOP_S = 2.0
_log = logs.get()


class RedisRelay:
    """Implements relay.Relay."""

    def __init__(
        self,
        replica: str,
        line: Line,
        outbox: Outbox,
        board: RelayedBoard,
        hub: Hub,
        incoming: Incoming,
        peers: Peers,
        presence: Presence,
        clock: Clock,
    ) -> None:
        self.replica, self._line, self._outbox = replica, line, outbox
        self._board, self._hub, self._incoming = board, hub, incoming
        self._peers, self._presence, self._clock = peers, presence, clock
        self._commands = Commands(replica, line, hub)
        self._number = 0
        self._called_s = float("-inf")
        self._heard_self_s = self._hears_since_s = float("-inf")
        self._whole_due = asyncio.Event()
        self._missing = ""
        self._started_s = clock.monotonic_s()
        self._whole_since_s: float | None = None
        self._is_new = True

    # What happens here, for the others.

    def joined(self, node: str) -> None:
        self._peers.drops(node)
        self._update_hearing()
        self._tell_node(node, with_ranks=False)

    def beat(self, node: str, data: bytes) -> None:
        self._outbox.put(letters.Beat(node, data))

    def part(self, node: str, part: wire.CapturePart) -> None:
        self._outbox.put(letters.Part(node, wire.encode(part)))

    def looks(self, node: str, samples: wire.Samples) -> None:
        self._outbox.put(letters.Looks(node, wire.encode(samples)))

    def left(self, node: str) -> None:
        self._outbox.put(letters.Left(node))

    def moves(self, node: str) -> None:
        self._outbox.put(letters.Left(node, is_moving=True))

    def others(self) -> bool:
        now_s = self._clock.monotonic_s()
        return len(self._peers.all()) > len(self._peers.silent(now_s))

    async def holder(self, node: str) -> str:
        replica = self._peers.holder(node)
        now_s = self._clock.monotonic_s()
        if not replica or self._board.age_s(node, now_s) > HALF_DEAD_S:
            return ""
        try:
            return replica if await self._line.listeners(f"to:{replica}") else ""
        except RelayError:
            return ""  # two connections are found out later; none would be worse

    async def send(self, node: str, frame: wire.ServerFrame) -> str:
        replica = self._peers.holder(node)
        if not replica:
            return f"the agent of node '{node}' is not connected"
        return await self._commands.send(replica, node, frame)

    def is_new(self) -> bool:
        return self._is_new

    def missing(self) -> str:
        return self._missing

    # Its life.

    async def run(self) -> None:
        """Relay for as long as the server runs."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._publish_for_ever())
            group.create_task(self._listen_for_ever())
            group.create_task(self._tell_whole_for_ever())
            group.create_task(self._look_for_ever())

    async def stop(self) -> None:
        """Say what is still to be said, and goodbye; after `run` has ended."""
        try:
            async with asyncio.timeout(STOP_S):
                await self._publish(is_leaving=True)
        except (RelayError, TimeoutError) as error:
            _log.info("goodbye_not_said", error=str(error))
        await self._line.close()

    async def _publish_for_ever(self) -> None:
        why_away: str | None = ""  # not yet known whether it is there
        while True:
            try:
                await self._publish()
                if why_away is not None:
                    why_away = None
                    self._outbox.open()
                    self._whole_due.set()
                    _log.info("redis_reached", replica=self.replica)
            except RelayError as error:
                if why_away != str(error):
                    _log.warning("redis_away", error=str(error))
                why_away = str(error)
                self._outbox.close()
                metrics.relay_failures.inc()
                await asyncio.sleep(RETRY_S)

    async def _publish(self, *, is_leaving: bool = False) -> None:
        """One batch, and a call where one is due; rests until there is something to say."""
        if not is_leaving and self._outbox.size_bytes < BATCH_BYTES:
            due_s = self._called_s + CALL_EVERY_S - self._clock.monotonic_s()
            await self._outbox.wait(max(0.0, min(due_s, CALL_EVERY_S)))
            await asyncio.sleep(FLUSH_S)
        sent = await self._batch()
        now_s = self._clock.monotonic_s()
        if is_leaving or now_s - self._called_s >= CALL_EVERY_S:
            self._called_s = now_s
            sent.append((CALLS, letters.encode(Call(self.replica, self._number, is_leaving))))
        if sent:
            await self._line.publish(sent)
        if self._outbox.is_lossy:
            self._outbox.open()
            self._whole_due.set()

    async def _batch(self) -> list[tuple[str, bytes]]:
        taken = self._outbox.take()
        if not taken:
            return []
        self._number += 1
        data = letters.encode(letters.Batch(self.replica, self._number, taken))
        # Packing a megabyte takes 10 ms, without Python's lock.
        packed = await asyncio.to_thread(letters.pack, data)
        metrics.relayed_bytes.inc(len(packed))
        return [(f"from:{self.replica}", packed)]

    async def _tell_whole_for_ever(self) -> None:
        while True:
            await self._whole_due.wait()
            self._whole_due.clear()
            since = self._number
            for node in self._hub.nodes():
                await self._outbox.room()
                self._tell_node(node, with_ranks=True)
                await asyncio.sleep(0)
            self._outbox.put(letters.Whole(self._hub.nodes(), since))
            await asyncio.sleep(RETRY_S)

    def _tell_node(self, node: str, *, with_ranks: bool) -> None:
        connection = self._hub.connection(node)
        now_s = self._clock.monotonic_s()
        told = self._board.whole(node, now_s) if connection is not None else None
        if told is None or connection is None:
            return
        connected_s = now_s - connection.since_s
        hello = wire.encode(told.hello)
        self._outbox.put(letters.Joined(node, hello, connected_s, told.clock_ahead_s))
        if with_ranks and told.heartbeat.ranks:
            data = wire.encode(told.heartbeat)
            self._outbox.put(letters.Beat(node, data, told.age_s))

    # What comes from the others.

    async def _listen_for_ever(self) -> None:
        while True:
            channels = [CALLS, f"to:{self.replica}"]
            channels += [f"from:{peer.replica}" for peer in self._peers.all()]
            try:
                async with self._line.listening(channels) as ears:
                    await self._listen(ears, self._clock.monotonic_s())
            except RelayError as error:
                _log.debug("ears_closed", error=str(error))
                await asyncio.sleep(RETRY_S)

    async def _listen(self, ears: Ears, began_s: float) -> None:
        """Until this connection has been silent for so long that it must be broken."""
        while True:
            message = await ears.next(CALL_EVERY_S)
            heard_s = max(self._heard_self_s, began_s)
            if message is None and self._clock.monotonic_s() - heard_s > self._peers.silent_s:
                raise RelayError(f"no message for {self._peers.silent_s:.0f} s")
            if message is None:
                continue
            try:
                await self._hear(ears, *message)
            except LetterError as error:
                metrics.letters_refused.inc()
                _log.warning("letter_refused", channel=message[0], error=str(error))
            except RelayError:
                raise
            except Exception:
                # The boundary of a letter: a defect in one must not make us deaf to the others.
                metrics.letters_refused.inc()
                _log.exception("letter_failed", channel=message[0])

    async def _hear(self, ears: Ears, channel: str, data: bytes) -> None:
        if channel == CALLS:
            await self._called(ears, letters.call(data))
        elif channel.startswith("from:"):
            await self._take(letters.batch(data))
        else:
            note = letters.note(data)
            if isinstance(note, Want):
                self._whole_due.set()
            else:
                self._commands.take(note)

    async def _called(self, ears: Ears, call: Call) -> None:
        now_s = self._clock.monotonic_s()
        if call.replica == self.replica:
            if self._is_deaf(now_s):
                self._hears_since_s = now_s
            self._heard_self_s = now_s
        elif call.is_leaving:
            self._bury(call.replica)
            await ears.ignore(f"from:{call.replica}")
        elif self._peers.called(call.replica, call.number, now_s):
            _log.info("replica_found", replica=call.replica)
            await ears.listen_to(f"from:{call.replica}")
        peer = self._peers.find(call.replica)
        if peer is not None:
            await self._want(peer)

    async def _take(self, batch: letters.Batch) -> None:
        peer = self._peers.find(batch.replica)
        if peer is None:
            return
        self._peers.batch(batch.replica, batch.number)
        for data in batch.letters:
            if not await self._incoming.take(peer, data):
                peer.miss(batch.number + 1)
        await self._want(peer)

    async def _want(self, peer: Peer) -> None:
        """Ask for its whole state where something of it was missed, now and then until it came."""
        if self._peers.wants(peer, self._clock.monotonic_s()):
            metrics.wholes_wanted.inc()
            note = letters.encode(Want(self.replica))
            await self._line.publish([(f"to:{peer.replica}", note)])

    # What is not heard.

    async def _look_for_ever(self) -> None:
        now_s = self._clock.monotonic_s()
        while True:
            before_s, now_s = now_s, self._clock.monotonic_s()
            if now_s - before_s > CALL_EVERY_S + STALLED_S:
                await asyncio.sleep(CALL_EVERY_S)  # what came meanwhile is heard first
                continue
            # Whoever was deaf as well needs its time to be heard again.
            if not self._is_deaf(now_s) and now_s - self._hears_since_s > self._peers.silent_s:
                for peer in self._peers.silent(now_s):
                    if not await self._lives(peer):
                        self._bury(peer.replica)
            for node in self._peers.astray(now_s):
                self._board.disconnected(node, now_s)
            self._update_hearing()
            self._settle(now_s)
            await asyncio.sleep(CALL_EVERY_S)

    def _settle(self, now_s: float) -> None:
        """A server is new until it hears all others and has looked at what they say."""
        if not self._is_new:
            return
        hears_all = not self._is_deaf(now_s) and all(peer.is_whole for peer in self._peers.all())
        self._whole_since_s = (self._whole_since_s or now_s) if hears_all else None
        is_steady = self._whole_since_s is not None and now_s - self._whole_since_s >= STEADY_S
        self._is_new = not is_steady and now_s - self._started_s < NEW_S

    async def _lives(self, peer: Peer) -> bool:
        try:
            is_listening = await self._line.listeners(f"to:{peer.replica}") > 0
        except RelayError:
            return True
        return is_listening or await self._presence.is_alive(peer.replica)

    def _bury(self, replica: str) -> None:
        if self._peers.find(replica) is None:
            return
        _log.info("replica_gone", replica=replica)
        now_s = self._clock.monotonic_s()
        for node in self._peers.forget(replica):
            self._board.disconnected(node, now_s)
        self._update_hearing()

    def _is_deaf(self, now_s: float) -> bool:
        return now_s - self._heard_self_s > self._peers.silent_s

    def _update_hearing(self) -> None:
        now_s = self._clock.monotonic_s()
        is_deaf = self._is_deaf(now_s)
        silent = self._peers.silent(now_s)
        is_whole = all(peer.is_whole for peer in self._peers.all())
        self._board.set_hearing(
            unheard=self._peers.unheard(now_s, is_deaf=is_deaf),
            is_deaf=is_deaf or bool(silent) or not is_whole,
            own=frozenset(self._hub.nodes()),
        )
        # At first nobody is heard, and that is no news: /readyz waits.
        missing = "" if self._is_new else _in_words(silent, is_deaf=is_deaf)
        if missing != self._missing:
            self._missing = missing
            _log.info("hearing_changed", missing=missing or "nothing")


def _in_words(silent: Sequence[Peer], *, is_deaf: bool) -> str:
    """What people read on every page: what is wrong, what it means, what to do."""
    if is_deaf:
        return (
            "Redis cannot be reached. Ranks whose agents are connected to another server are "
            "unknown until it is back; nothing is lost. Check that Redis runs; the log says why."
        )
    if not silent:
        return ""
    names = ", ".join(peer.replica.rpartition(":")[0] for peer in silent[:4])
    nodes = sum(len(peer.nodes) for peer in silent)
    whose = f"its {nodes} nodes" if nodes != 1 else "its node"
    return (
        f"Server {names} is not heard. The ranks of {whose} are unknown until it answers or their "
        "agents connect to another server. Check that it runs."
    )
