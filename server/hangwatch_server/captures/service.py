"""Asks agents for captures and makes what comes back durable before it is acknowledged.

A capture always ends: complete, or partial with one reason for each rank that did not answer. What
the stacks mean is read by `stacks`; when to take one is decided by detection or a person.
"""

from __future__ import annotations

import asyncio
import dataclasses
import secrets
from collections.abc import Collection
from typing import Protocol

import msgspec

from hangwatch_agent import wire
from hangwatch_server import logs, metrics, process_states, ranges
from hangwatch_server.board import Board
from hangwatch_server.board.base import job_id as id_of_launch
from hangwatch_server.bus import Bus
from hangwatch_server.captures.pending import Pending, absent_part
from hangwatch_server.captures.record import Record
from hangwatch_server.clock import Clock
from hangwatch_server.db import captures as rows
from hangwatch_server.db.engine import Database
from hangwatch_server.errors import (
    ConflictError,
    DatabaseError,
    HangwatchError,
    NotFoundError,
)
from hangwatch_server.ingest.routing import Router
from hangwatch_server.model import Capture, CaptureState, Link, RankView, Snapshot
from hangwatch_server.relay import Relay

GRACE_S = 3.0  # for the way there and back, beyond the agent's own deadline
CHECK_S = 0.25
ABANDONED_EVERY_S = 30.0
ABANDONED_AFTER_S = 60.0  # past its deadline; clocks of servers may differ by so much
RECHECK_S = 1.0  # bounds a wait on events of which one may have been lost
MAX_RANKS = 65_536

_log = logs.get()


class PartSink(Protocol):
    """Who else wants to see parts: detection."""

    def part_arrived(
        self, job: str, node: str, part: wire.CapturePart, now_s: float, *, is_kept: bool = True
    ) -> None: ...


class Captures(Record):
    """Requests, parts and their end; and what is on record."""

    def __init__(
        self,
        *,
        db: Database,
        board: Board,
        router: Router,
        relay: Relay,
        bus: Bus,
        clock: Clock,
        sink: PartSink,
        deadline_s: float = 15.0,
    ) -> None:
        super().__init__(db, clock)
        self._board, self._router, self._relay, self._bus = board, router, relay, bus
        self._sink, self._deadline_s = sink, deadline_s
        self._pending: dict[str, Pending] = {}
        self._evidence: set[str] = set()
        self._unread: set[str] = set()  # incidents with captures that nobody has opened yet

    async def tell(self, node: str, command: wire.AskRas) -> bool:
        """Give a node's agent a command that no capture hangs on; False when it is not there."""
        return not await self._router.send(node, command)

    async def request(
        self,
        job_id: str,
        *,
        ranks: str | None,
        kinds: Collection[wire.CaptureKind | str],
        native: bool,
        by: str,
        incident: str | None = None,
    ) -> Capture:
        """Store a capture and ask the agents; None for `ranks` means all of them.

        Raises NotFoundError for an unknown job or rank, ConflictError for one that is over.
        """
        snapshot, launch = self._live(job_id)
        wanted = _wanted(snapshot, ranks)
        chosen = tuple(sorted({wire.CaptureKind(kind) for kind in kinds}))
        capture = Capture(
            id=secrets.token_hex(8),
            job=job_id,
            attempt=snapshot.attempt,
            incident=incident,
            state=CaptureState.TAKING,
            requested_at=self._clock.now(),
            requested_by=by,
            ranks=ranges.text(wanted),
            kinds=chosen,
            native=native,
        )
        nodes = {rank: snapshot.ranks[rank].node for rank in wanted}
        pending = await self._begin(capture, launch, nodes)
        metrics.captures_requested.inc()
        _log.info("capture_requested", capture=capture.id, job=job_id, ranks=capture.ranks, by=by)
        await self._ask(pending, snapshot, chosen)
        await self._finish_if_done(pending)
        return capture

    async def _begin(self, capture: Capture, launch: str, nodes: dict[int, str]) -> Pending:
        pending = Pending(
            capture=capture,
            launch=launch,
            deadline_s=self._clock.monotonic_s() + self._deadline_s + GRACE_S,
            waiting=dict(nodes),
            nodes=nodes,
        )
        # Before it is stored: `remember` must not take it for one whose asker is gone.
        self._pending[capture.id] = pending
        try:
            await rows.create(self._db, capture)
        except BaseException:
            del self._pending[capture.id]
            raise
        return pending

    async def deliver(self, node: str, part: wire.CapturePart) -> bool:
        """Make a part durable; False when the node may not speak for this rank.

        Raises DatabaseError when the part is not durable, and then must not be acknowledged.
        """
        pending = self._pending.get(part.capture)
        if pending is not None and (
            pending.nodes.get(part.rank) != node or pending.launch != part.launch
        ):
            return False
        if pending is None and not await self._is_expected(node, part):
            # Acknowledged all the same: an agent that keeps it would offer it for ever.
            _log.warning("capture_part_dropped", capture=part.capture, rank=part.rank, node=node)
            return True
        try:
            await rows.store_part(self._db, part, node)
        except NotFoundError:
            _log.info("capture_deleted_meanwhile", capture=part.capture, rank=part.rank)
            return True
        metrics.capture_parts_stored.inc()
        self._relay.part(node, part)
        await self.arrived(node, part, self._clock.monotonic_s())
        self._bus.publish(f"capture:{part.capture}", {"capture": part.capture})
        return True

    async def arrived(self, node: str, part: wire.CapturePart, now_s: float) -> None:
        """A part is durable, whichever server it came to: use it, and wait for it no longer."""
        self._sink.part_arrived(id_of_launch(part.launch), node, part, now_s)
        pending = self._pending.get(part.capture)
        if pending is not None and pending.nodes.get(part.rank) == node:
            pending.answer(part.rank, is_missing=False)
            await self._finish_if_done(pending)

    def sampled(self, node: str, frame: wire.Samples) -> None:
        """Hand an agent's own looks at its ranks on; those of other nodes' ranks are dropped."""
        now_s = self._clock.monotonic_s()
        for part in frame.parts:
            job = id_of_launch(part.launch)
            if self._board.node_of(job, part.rank) != node:
                _log.info("sample_dropped", job=job, rank=part.rank, node=node)
                continue
            looked = msgspec.structs.replace(part, entries=())
            self._sink.part_arrived(job, node, looked, now_s, is_kept=False)

    async def run(self) -> None:
        """End captures whose deadline has passed; runs as long as the server."""
        abandoned_due_s = float("-inf")
        while True:
            await asyncio.sleep(CHECK_S)
            await self._merge_ahead()
            now_s = self._clock.monotonic_s()
            if now_s >= abandoned_due_s:
                abandoned_due_s = now_s + ABANDONED_EVERY_S
                await self._end_abandoned()
            for pending in list(self._pending.values()):
                if now_s >= pending.deadline_s:
                    await self._expire_safely(pending)

    async def _end_abandoned(self) -> None:
        """Those whose server is gone: nobody else would. What came of them stands."""
        after_s = self._deadline_s + GRACE_S + ABANDONED_AFTER_S
        try:
            await rows.end_abandoned(self._db, after_s, without=tuple(self._pending))
        except DatabaseError as error:
            metrics.database_failures.inc()
            _log.info("abandoned_captures_not_ended", error=str(error))

    async def _merge_ahead(self) -> None:
        """Have the stacks of new evidence merged before somebody asks: many take a second."""
        while self._unread:
            incident = self._unread.pop()
            try:
                await self.incident_tree(incident)
            except HangwatchError as error:
                _log.info("stacks_not_merged_ahead", incident=incident, error=str(error))

    async def wait(self, capture_id: str, timeout_s: float) -> Capture:
        """The capture once it is finished, or as it is when `timeout_s` has passed.

        Whichever server asked for it: the one that finishes it says so to all.
        """
        end_s = self._clock.monotonic_s() + timeout_s
        with self._bus.subscribe((f"capture:{capture_id}",)) as changes:
            while await rows.is_taking(self._db, capture_id):
                left_s = end_s - self._clock.monotonic_s()
                if left_s <= 0:
                    break
                await changes.next(min(left_s, RECHECK_S))
            return await self.get(capture_id)

    def waited_for(self, capture_id: str) -> dict[str, str]:
        """Per node the ranks that have not answered yet; {} where another replica has asked."""
        pending = self._pending.get(capture_id)
        by_node: dict[str, list[int]] = {}
        for rank, node in (pending.waiting if pending is not None else {}).items():
            by_node.setdefault(node, []).append(rank)
        return {node: ranges.text(of_node) for node, of_node in sorted(by_node.items())}

    def has_evidence(self, incident_id: str | None) -> bool:
        """Whether a capture of this incident is finished."""
        return incident_id in self._evidence

    def is_taking(self, job_id: str) -> bool:
        """Whether a capture of this job is under way."""
        return any(pending.capture.job == job_id for pending in self._pending.values())

    async def learn_evidence(self, incident_id: str) -> None:
        """Learn whether another server has finished a capture of this incident."""
        found = await rows.of_incident(self._db, incident_id)
        if any(capture.state is not CaptureState.TAKING for capture in found):
            self._evidence.add(incident_id)

    async def remember(self, incident_id: str) -> None:
        """Learn which captures are this incident's.

        Those that were asked for before it opened, and those that an earlier server asked for.
        """
        before = dict(self._pending)
        for capture in await rows.of_incident(self._db, incident_id):
            pending = before.get(capture.id) or self._pending.get(capture.id)
            if pending is not None:
                pending.capture = dataclasses.replace(pending.capture, incident=incident_id)
            if capture.state is not CaptureState.TAKING or (pending and pending.done.is_set()):
                self._evidence.add(incident_id)
                self._unread.add(incident_id)
            elif pending is None:
                # Whoever asked for it is gone; parts that still come are stored.
                await rows.finish(self._db, capture.id, CaptureState.PARTIAL)

    def _live(self, job_id: str) -> tuple[Snapshot, str]:
        now_s = self._clock.monotonic_s()
        snapshot = self._board.snapshot(job_id, now_s)
        meta = self._board.job_meta(job_id, now_s)
        if snapshot is None or meta is None:
            raise ConflictError(
                f"no agent reports job '{job_id}' now: captures can be taken of running jobs only"
            )
        return snapshot, meta.launch

    async def _ask(
        self, pending: Pending, snapshot: Snapshot, kinds: tuple[wire.CaptureKind, ...]
    ) -> None:
        by_node: dict[str, list[int]] = {}
        for rank in sorted(pending.waiting):
            why = _why_not(snapshot.ranks[rank])
            if why:
                await self._give_up(pending, snapshot.ranks[rank], why, "")
            else:
                by_node.setdefault(snapshot.ranks[rank].node, []).append(rank)
        async with asyncio.TaskGroup() as group:
            for node, of_node in by_node.items():
                group.create_task(self._ask_node(pending, snapshot, node, of_node, kinds))

    async def _ask_node(
        self,
        pending: Pending,
        snapshot: Snapshot,
        node: str,
        of_node: list[int],
        kinds: tuple[wire.CaptureKind, ...],
    ) -> None:
        frame = wire.TakeCapture(
            capture=pending.capture.id,
            targets=tuple(wire.Target(launch=pending.launch, rank=rank) for rank in of_node),
            kinds=kinds,
            native=pending.capture.native,
            deadline_s=self._deadline_s,
        )
        why_not = await self._router.send(node, frame)
        if not why_not:
            return
        for rank in of_node:
            await self._give_up(
                pending,
                snapshot.ranks[rank],
                why_not,
                f"check on {node} that `hangwatch agent` runs",
            )

    async def _expire_safely(self, pending: Pending) -> None:
        try:
            await self._expire(pending)
        except Exception:
            # The boundary of one capture: it must not keep the others from ending.
            metrics.watch_failures.inc()
            _log.exception("capture_not_ended", capture=pending.capture.id)
            self._pending.pop(pending.capture.id, None)

    async def _expire(self, pending: Pending) -> None:
        snapshot = self._board.snapshot(pending.capture.job, self._clock.monotonic_s())
        for rank, node in list(pending.waiting.items()):
            view = snapshot.ranks.get(rank) if snapshot is not None else None
            is_away = view is None or view.link is not Link.LIVE
            why = "its agent was lost meanwhile" if is_away else "its agent did not answer in time"
            missing = view or RankView(rank=rank, node=node, link=Link.LOST, age_s=0, beat=None)
            if not await self._give_up(pending, missing, why, f"look at the agent's log on {node}"):
                return
        await self._finish_if_done(pending)

    async def _give_up(self, pending: Pending, view: RankView, why: str, remedy: str) -> bool:
        """Store why a rank is missing; False when the database did not take it: tried again."""
        pid = view.beat.pid if view.beat is not None else 0
        part = absent_part(pending.capture.id, pending.launch, view.rank, pid, why, remedy)
        try:
            node = pending.nodes.get(view.rank, view.node)
            is_missing = await rows.store_part(self._db, part, node)
        except NotFoundError:
            is_missing = True
            _log.info("capture_deleted_meanwhile", capture=pending.capture.id)
        except DatabaseError as error:
            _log.warning("capture_reason_not_stored", capture=part.capture, error=str(error))
            metrics.database_failures.inc()
            return False
        # A part that was there already came to another server, which could not tell us.
        pending.answer(view.rank, is_missing=is_missing)
        return True

    async def _finish_if_done(self, pending: Pending) -> None:
        if pending.waiting or pending.done.is_set():
            return
        state = CaptureState.PARTIAL if pending.missing else CaptureState.COMPLETE
        capture = pending.capture
        try:
            await rows.finish(self._db, capture.id, state)
        except DatabaseError as error:
            _log.warning("capture_end_not_stored", capture=capture.id, error=str(error))
            metrics.database_failures.inc()
            return  # the deadline comes back to it
        capture = pending.capture  # it may have been linked to an incident meanwhile
        pending.done.set()
        self._pending.pop(capture.id, None)
        if capture.incident is not None:
            self._evidence.add(capture.incident)
            self._unread.add(capture.incident)
            self._bus.publish(f"incident:{capture.incident}", {"incident": capture.incident})
        self._bus.publish(f"capture:{capture.id}", {"capture": capture.id})
        self._bus.publish(f"job:{capture.job}", {"job": capture.job})
        _log.info(
            "capture_finished",
            capture=capture.id,
            job=capture.job,
            state=state,
            answered=pending.answered,
            missing=pending.missing,
        )

    async def _is_expected(self, node: str, part: wire.CapturePart) -> bool:
        """Whether a late part belongs to a stored capture of a rank that runs on this node."""
        job = id_of_launch(part.launch)
        capture = await rows.find(self._db, part.capture)
        if capture is None or capture.job != job or part.rank not in ranges.parse(capture.ranks):
            return False
        asked = {row.rank: row.node for row in capture.parts}
        return asked.get(part.rank, self._board.node_of(job, part.rank)) == node


def _wanted(snapshot: Snapshot, spec: str | None) -> tuple[int, ...]:
    if spec is None:
        return tuple(sorted(snapshot.ranks))[:MAX_RANKS]
    wanted = ranges.parse(spec)
    unknown = [rank for rank in wanted if rank not in snapshot.ranks]
    if unknown or not wanted:
        raise NotFoundError(
            f"the job has no {ranges.named(unknown) if unknown else 'rank (none given)'}: "
            f"its ranks are 0-{snapshot.world_size - 1}"
        )
    return wanted[:MAX_RANKS]


def _why_not(view: RankView) -> str:
    """Why a rank need not be asked; "" when it can be."""
    if view.beat is None:
        return "no agent has reported this rank"
    if process_states.has_ended(view.beat.process):
        return f"its process is gone: {view.beat.process.exit_reason or 'cause unknown'}"
    return ""
