"""The loop that looks at every job on the board, twice a second.

For each job: snapshot, diagnosis if anything stands still, detection, verdict, incident, captures.
What one job does to this code never keeps the others from being looked at.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping

from hangwatch_agent import wire
from hangwatch_server import detect, diagnose, logs, metrics, ranges, tracing
from hangwatch_server.board import Board
from hangwatch_server.bus import Bus
from hangwatch_server.captures.service import Captures
from hangwatch_server.clock import Clock
from hangwatch_server.db import node_history, retention
from hangwatch_server.db import nodes as node_rows
from hangwatch_server.db.engine import Database
from hangwatch_server.detect import Decision, DetectSettings, Memory, Wish
from hangwatch_server.errors import HangwatchError
from hangwatch_server.model import Finding, Kind, Link, NodeHistory, Snapshot
from hangwatch_server.settings import ServerSettings
from hangwatch_server.watch import (
    advice,
    appointments,
    attempts,
    findings,
    gauges,
    guard,
    rows,
    verdicts,
)
from hangwatch_server.watch.appointments import Appointments
from hangwatch_server.watch.leases import Leases
from hangwatch_server.watch.ledger import Ledger
from hangwatch_server.watch.samples import Samples
from hangwatch_server.watch.watched import Watched

NODES_EVERY_S = 30.0
PRUNE_EVERY_S = 3_600.0
HISTORY_DAYS = 30
BY = "hangwatch"
_log = logs.get()


class Loop:
    """Owns what is known of each job; `Watch` reads it."""

    def __init__(
        self,
        *,
        settings: ServerSettings,
        limits: DetectSettings,
        clock: Clock,
        db: Database,
        board: Board,
        bus: Bus,
        captures: Captures,
        samples: Samples,
        ledger: Ledger,
        leases: Leases,
    ) -> None:
        self.watched: dict[str, Watched] = {}
        self.history_by_node: Mapping[str, NodeHistory] = {}
        self._settings, self._limits, self._clock = settings, limits, clock
        self._db, self._board, self._bus, self._captures = db, board, bus, captures
        self._samples, self._ledger, self._leases = samples, ledger, leases
        self._started_s = clock.monotonic_s()
        self._nodes_due_s = 0.0
        self._prune_due_s = 0.0
        self._links: dict[str, Link] = {}
        self._unstored_nodes: set[str] = set()
        self._leases_to_release: list[str] = []
        self._appointments = Appointments()
        self._storing: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Look at all jobs until cancelled; gives the leases back at the end."""
        try:
            async with asyncio.TaskGroup() as errands:
                while True:
                    await self._tick(errands)
                    await asyncio.sleep(self._settings.tick_s)
        finally:
            await self._leases.release_all()

    async def _tick(self, errands: asyncio.TaskGroup) -> None:
        """One look at everything; captures are asked for beside it, since an agent may be slow."""
        with metrics.tick_seconds.time():
            for job in self._board.jobs():
                for wish in await self._look_safely(job):
                    errands.create_task(self._fulfil(self.watched[job], wish))
                self._appoint(errands, job)
            await self._tend_safely(errands)
        gauges.tell(self.watched.values(), self._links.values())

    def _appoint(self, errands: asyncio.TaskGroup, job: str) -> None:
        watched = self.watched.get(job)
        node = self._appointments.due(watched.snapshot) if watched is not None else None
        if watched is not None and node is not None:
            command = wire.AskRas(launches=(watched.meta.launch,), for_s=appointments.FOR_S)
            errands.create_task(self._tell(watched, node, command))

    async def _look_safely(self, job: str) -> tuple[Wish, ...]:
        try:
            return await self._look(job, self._clock.monotonic_s())
        except Exception:
            # The boundary of a job: whatever its ranks say must not blind us to the other jobs.
            metrics.watch_failures.inc()
            _log.exception("look_failed", job=job)
            return ()

    async def _look(self, job: str, now_s: float) -> tuple[Wish, ...]:
        """Bring everything about one job up to date; returns the captures to ask for."""
        watched = self._begin(job, now_s)
        if watched is None:
            return ()
        was_loaded = watched.is_loaded
        if await self._ledger.load(watched, now_s) and not was_loaded:
            self._refresh(watched, now_s, is_renumbered=True)  # it may be a later attempt
        self.watched[job] = watched  # not before: until then readers see what is stored of it
        decision = await self._judge(watched, now_s)
        self._conclude(watched, decision)
        is_ours = watched.is_loaded and await self._ledger.write(watched, decision, now_s)
        if is_ours and not watched.is_ours:
            self._own(watched)
        watched.is_ours = is_ours
        # With the database away too: then under the old index.
        watched.verdict = watched.draft = self._ledger.shown(watched, now_s)
        watched.mark(now_s)
        if watched.is_news(now_s):
            self._bus.publish(f"job:{job}", {"job": job}, is_local=True)
        return decision.wishes if is_ours else ()

    def _own(self, watched: Watched) -> None:
        """What was wished for while this server could write nothing was not taken."""
        incident = watched.draft.incident
        if incident is not None and not self._captures.has_evidence(incident):
            watched.memory = detect.ask_anew(watched.memory)

    def _begin(self, job: str, now_s: float) -> Watched | None:
        watched = self.watched.get(job)
        if watched is not None:
            return watched if self._refresh(watched, now_s) else None
        snapshot, meta = self._board.snapshot(job, now_s), self._board.job_meta(job, now_s)
        if snapshot is None or meta is None:
            return None
        now = self._clock.now()
        return Watched(
            id=job,
            first_seen=now,
            last_seen=now,
            meta=meta,
            snapshot=snapshot,
            verdict=verdicts.first(meta, now),
            draft=verdicts.first(meta, now),
        )

    def _refresh(self, watched: Watched, now_s: float, *, is_renumbered: bool = False) -> bool:
        """Take in what the board says now; an attempt that is renumbered was not replaced."""
        snapshot = self._board.snapshot(watched.id, now_s)
        meta = self._board.job_meta(watched.id, now_s)
        if snapshot is None or meta is None:
            return False
        if snapshot.attempt != watched.snapshot.attempt:
            _log.info("job_restarted", job=watched.id, attempt=snapshot.attempt)
            ended = watched.snapshot.attempt
            if not is_renumbered:
                self._note_replaced(watched, snapshot.attempt)
            watched.memory = detect.next_attempt(
                watched.memory, ended, watched.finding, watched.verdict.state
            )
            watched.finding = Finding(kind=Kind.NONE)
            watched.incident = None
        if meta.heard_s > watched.meta.heard_s:
            watched.last_seen = self._clock.now()
        watched.snapshot, watched.meta = self._samples.into(snapshot), meta
        return True

    def _note_replaced(self, watched: Watched, attempt: int) -> None:
        last = attempts.last_word(
            watched.meta,
            watched.snapshot,
            watched.finding,
            watched.verdict,
            attempt,
            self._clock.now(),
        )
        if last is not None:
            watched.replaced.append(last)

    async def _judge(self, watched: Watched, now_s: float) -> Decision:
        snapshot = watched.snapshot
        known = (watched.memory, watched.finding, self._limits)
        if watched.is_large:
            result = await asyncio.to_thread(_judge, snapshot, *known)
        else:
            result = _judge(snapshot, *known)
        watched.finding, watched.memory, decision = result
        decision = guard.unheard(watched, decision, self._board.unheard(watched.id))
        return guard.apply(watched, decision, now_s)

    def _conclude(self, watched: Watched, decision: Decision) -> None:
        verdict = verdicts.build(
            watched.meta,
            watched.snapshot,
            watched.finding,
            decision,
            watched.verdict,
            self._clock.now(),
        )
        action = advice.action(
            decision.state,
            watched.finding,
            watched.snapshot,
            self.history_by_node,
            evidence_stored=self._captures.has_evidence(verdict.incident),
            is_repeated=decision.is_repeated,
        )
        watched.draft = dataclasses.replace(verdict, action=action)

    async def _fulfil(self, watched: Watched, wish: Wish) -> None:
        try:
            await self._captures.request(
                watched.id,
                ranks=ranges.text(wish.ranks),
                kinds=wish.kinds,
                native=False,
                by=BY,
                incident=watched.verdict.incident,
            )
        except HangwatchError as error:
            _log.warning("capture_not_taken", job=watched.id, error=str(error))
        except Exception:
            # The boundary of an errand: a failed capture must not end the loop.
            metrics.watch_failures.inc()
            _log.exception("capture_failed", job=watched.id)

    async def _tell(self, watched: Watched, node: str, command: wire.AskRas) -> None:
        try:
            await self._captures.tell(node, command)
        except Exception:
            # The boundary of an errand: whatever an agent's line does must not end the loop.
            metrics.watch_failures.inc()
            _log.exception("agent_not_told", job=watched.id, node=node)

    def show(self, job: str) -> None:
        """Another server, which owns this job, has stored a verdict: show it at once."""
        watched = self.watched.get(job)
        if watched is None or not watched.is_followed:
            return
        watched.verdict = self._ledger.shown(watched, self._clock.monotonic_s())
        index = str(watched.verdict.index)
        self._bus.publish(f"verdict:{job}", {"job": job, "index": index}, is_local=True)
        self._bus.publish(f"job:{job}", {"job": job}, is_local=True)
        self._bus.publish("jobs", {"job": job}, is_local=True)

    def part_arrived(
        self, job: str, node: str, part: wire.CapturePart, now_s: float, *, is_kept: bool = True
    ) -> None:
        """Take a part of a capture into the next snapshots (captures.service.PartSink).

        One that is not kept is a look that its agent took by itself, and is stored nowhere.
        """
        if job not in self.watched:
            return  # late, of a job that has left memory: nothing would ever forget it again
        self._samples.add(job, part, now_s, is_kept=is_kept)
        if part.entries:
            self._board.merge_entries(part, now_s)

    async def _tend_safely(self, errands: asyncio.TaskGroup) -> None:
        now_s = self._clock.monotonic_s()
        self._tell_links(now_s)
        for job in self._board.forget(self._settings.forget_after_s, now_s):
            self.watched.pop(job, None)
            self._samples.forget(job)
            self._ledger.forget(job)
            self._appointments.forget(job)
            self._leases_to_release.append(job)
        try:
            await self._tend(errands, now_s)
        except HangwatchError as error:
            metrics.database_failures.inc()
            _log.warning("housekeeping_put_off", error=str(error))
        except Exception:
            # The boundary of housekeeping: looking at jobs goes on.
            metrics.watch_failures.inc()
            _log.exception("housekeeping_failed")

    async def _tend(self, errands: asyncio.TaskGroup, now_s: float) -> None:
        while self._leases_to_release:
            await self._leases.release(self._leases_to_release.pop())
        if now_s >= self._nodes_due_s:
            self._nodes_due_s = now_s + NODES_EVERY_S
            errands.create_task(self._learn_history())
            self._unstored_nodes |= self._links.keys()
            if now_s - self._started_s >= self._settings.forget_after_s:  # agents had time to come
                await self._ledger.end_abandoned(self._settings.abandon_after_s)
        if self._unstored_nodes and (self._storing is None or self._storing.done()):
            self._storing = errands.create_task(self._store_nodes_safely(now_s))
        if now_s >= self._prune_due_s:
            self._prune_due_s = now_s + PRUNE_EVERY_S
            await retention.prune(
                self._db,
                older_than_days=self._settings.retention_days,
                hidden_older_than_days=self._settings.suspicion_retention_days,
            )

    async def _learn_history(self) -> None:
        """Beside the looks: over a month of many incidents the question takes most of a second."""
        try:
            self.history_by_node = await node_history.by_node(self._db, HISTORY_DAYS)
        except HangwatchError as error:
            metrics.database_failures.inc()
            _log.warning("history_not_read", error=str(error))
        except Exception:
            # The boundary of an errand: looking at jobs goes on.
            metrics.watch_failures.inc()
            _log.exception("history_not_read")

    async def _store_nodes_safely(self, now_s: float) -> None:
        """Beside the looks: a database that does not answer must not stop them."""
        try:
            await self._store_nodes(now_s)
        except HangwatchError as error:
            metrics.database_failures.inc()
            _log.warning("nodes_not_stored", error=str(error))
        except Exception:
            # The boundary of an errand: looking at jobs goes on.
            metrics.watch_failures.inc()
            _log.exception("nodes_not_stored")

    async def _store_nodes(self, now_s: float) -> None:
        history, now = self.history_by_node, self._clock.now()
        names = frozenset(self._unstored_nodes)
        due = [node for node in self._board.nodes(now_s) if node.name in names]
        await node_rows.save(self._db, [rows.of_node(node, history, now) for node in due])
        self._unstored_nodes -= names

    def _tell_links(self, now_s: float) -> None:
        links = self._board.links(now_s)
        for name, link in links.items():
            if self._links.get(name) is not link:
                self._bus.publish("nodes", {"node": name}, is_local=True)
                if name not in self._links:
                    self._unstored_nodes.add(name)  # a new one is stored at once
        self._links = links


def _judge(
    snapshot: Snapshot, memory: Memory, before: Finding, limits: DetectSettings
) -> tuple[Finding, Memory, Decision]:
    if detect.needs_diagnosis(snapshot, memory, limits):
        with tracing.span("diagnose", job=snapshot.job, ranks=snapshot.world_size) as note:
            finding = findings.main(diagnose.diagnose(snapshot), before, memory)
            note("kind", finding.kind.value)
    else:
        finding = Finding(kind=Kind.NONE, coverage=diagnose.coverage(snapshot), confidence=1.0)
    memory, decision = detect.step(memory, snapshot, finding, limits)
    return findings.last(finding, before, memory), memory, decision
