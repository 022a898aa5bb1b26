"""Makes durable what a look at a job has found: job, incident, verdict, in that order.

Each look tries again what the last one could not write, so a database that is away costs no state;
while it is away nothing is asked of it for a moment, and detection goes on in memory.
"""

from __future__ import annotations

import asyncio
import dataclasses

from hangwatch_server import detect, logs, metrics
from hangwatch_server.board import Board
from hangwatch_server.bus import Bus
from hangwatch_server.captures.service import Captures
from hangwatch_server.clock import Clock
from hangwatch_server.db import incidents as incident_rows
from hangwatch_server.db import jobs as job_rows
from hangwatch_server.db import moments as moment_rows
from hangwatch_server.db import timelines
from hangwatch_server.db.engine import Database
from hangwatch_server.db.leases import Lease
from hangwatch_server.detect import Decision
from hangwatch_server.errors import ConflictError, DatabaseError, NotFoundError, StaleLeaseError
from hangwatch_server.incidents.keeper import Keeper
from hangwatch_server.model import SHOWN_INCIDENTS, Incident, IncidentState, State, Verdict
from hangwatch_server.watch import moments, rows, verdicts
from hangwatch_server.watch.following import Following
from hangwatch_server.watch.leases import Leases
from hangwatch_server.watch.watched import Watched

WRITE_TIMEOUT_S = 5.0
AWAY_S = 2.0
# One that does not answer: breaking off a query takes the driver ten seconds, in which no job is
# looked at.
SILENT_AWAY_S = 60.0
OLD_S = 5.0  # what was stored before the database went away is no longer what is believed
SAVE_EVERY_S = 20.0
SAVE_TIMELINE_EVERY_S = 60.0
CHANGE_SEEN_S = 2.0  # until the timeline has a point of a verdict that is new
EARLIER_INCIDENTS = 20  # newest first: enough to see that restarts end at one place
_OVER = (State.FINISHED, State.FAILED)
_log = logs.get()


class Ledger:
    """Writes of the loop, guarded by each job's lease."""

    def __init__(
        self,
        db: Database,
        board: Board,
        bus: Bus,
        captures: Captures,
        keeper: Keeper,
        leases: Leases,
        following: Following,
        clock: Clock,
    ) -> None:
        self._db, self._board, self._bus, self._clock = db, board, bus, clock
        self._captures, self._keeper, self._leases = captures, keeper, leases
        self._following = following
        self._away_until_s = 0.0

    async def write(self, watched: Watched, decision: Decision, now_s: float) -> bool:
        """Whether this process owns the job and all of it is durable."""
        if now_s < self._away_until_s:
            return False
        try:
            async with asyncio.timeout(WRITE_TIMEOUT_S):
                is_ours = await self._write(watched, decision, now_s)
            watched.away_since_s = None
            return is_ours
        except (DatabaseError, TimeoutError) as error:
            self._note_away(watched, error, now_s)
        except StaleLeaseError as error:
            self._leases.lose(watched.id)
            watched.is_followed = True
            self._following.follow(watched.id)
            _log.warning("lease_stale", job=watched.id, error=str(error))
        except (NotFoundError, ConflictError) as error:
            # Deleted by an administrator, or changed by a person in between: write it anew.
            watched.saved_s = watched.stored_key = watched.applied_key = None
            self._keeper.forget(watched.id)
            _log.info("job_written_anew", job=watched.id, error=str(error))
        return False

    def shown(self, watched: Watched, now_s: float) -> Verdict:
        """The draft of this look or, of a job that another server owns, what that one stored.

        While the database is away nobody stores anything, and each server shows what it believes.
        """
        since_s = watched.away_since_s
        away_s = 0.0 if since_s is None else now_s - since_s
        if not watched.is_followed or away_s > OLD_S:
            return watched.draft
        return verdicts.followed(watched.draft, self._following.verdict(watched.id))

    async def load(self, watched: Watched, now_s: float) -> bool:
        """Read what an earlier process stored of a job, once; False while the database is away."""
        if watched.is_loaded:
            return True
        if now_s < self._away_until_s:
            return False
        try:
            async with asyncio.timeout(WRITE_TIMEOUT_S):
                await self._load(watched, now_s)
        except (DatabaseError, TimeoutError) as error:
            self._note_away(watched, error, now_s)
            return False
        watched.is_loaded = True
        return True

    def _note_away(self, watched: Watched, error: Exception, now_s: float) -> None:
        is_silent = isinstance(error, TimeoutError)
        self._away_until_s = now_s + (SILENT_AWAY_S if is_silent else AWAY_S)
        watched.away_since_s = now_s if watched.away_since_s is None else watched.away_since_s
        metrics.database_failures.inc()
        _log.warning("database_away", job=watched.id, error=str(error) or "no answer in time")

    async def end_abandoned(self, after_s: float) -> None:
        """End incidents of jobs whose agents were not heard for so long: nobody will clear them."""
        for incident in await incident_rows.abandoned(self._db, after_s):
            lease = await self._leases.borrow(incident.job)
            if lease is None:
                continue  # another server watches it
            try:
                await incident_rows.end(
                    self._db, lease, incident.id, IncidentState.ENDED, "job not seen any more"
                )
            except (StaleLeaseError, ConflictError, NotFoundError) as error:
                _log.info("incident_not_ended", incident=incident.id, error=str(error))
                continue
            _log.info("incident_abandoned", incident=incident.id, job=incident.job)
            self._bus.publish(f"incident:{incident.id}", {"incident": incident.id})

    def forget(self, job: str) -> None:
        self._keeper.forget(job)
        self._following.leave(job)

    async def _load(self, watched: Watched, now_s: float) -> None:
        stored = await job_rows.find(self._db, watched.id)
        if stored is None:
            return
        attempt = await job_rows.stored_attempt(self._db, watched.id)
        if attempt is not None:
            self._board.set_base(watched.id, attempt.attempt, attempt.processes, now_s)
        watched.first_seen = stored.first_seen
        watched.verdict = stored.verdict
        watched.stored_key = verdicts.key(stored.verdict)
        watched.go_on(rows.restored(await timelines.find(self._db, watched.id), now_s))
        shown, _ = await incident_rows.list_page(
            self._db, states=SHOWN_INCIDENTS, job=watched.id, limit=EARLIER_INCIDENTS
        )
        earlier = [item.verdict for item in shown if item.attempt < stored.attempt]
        watched.memory = detect.inherit(watched.memory, stored.verdict.limits, earlier)
        if not await self._leases.is_elsewhere(watched.id):
            await self._inherit(watched, stored.attempt)

    async def _write(self, watched: Watched, decision: Decision, now_s: float) -> bool:
        lease = await self._leases.hold(watched.id, now_s)
        if lease is None:
            watched.replaced.clear()  # another server tells
            watched.is_followed = True
            self._following.follow(watched.id)
            return False
        if watched.is_followed:
            await self._take_over(watched, now_s)
            return False  # the next look judges with what is known now
        if watched.saved_s is None:
            # Rows of verdicts and captures refer to the job's.
            await self._save(watched, lease, now_s)
        await self._close_replaced(watched, lease)
        incident = await self._apply(watched, decision, lease)
        if incident is not None:
            await self._keep_moment(watched, incident, lease)
        watched.draft = dataclasses.replace(
            watched.draft, incident=incident.id if incident is not None else None
        )
        if verdicts.key(watched.draft) != watched.stored_key:
            await self._store_verdict(watched, lease)
            await self._save(watched, lease, now_s)
            watched.timeline_due_s = min(watched.timeline_due_s, now_s + CHANGE_SEEN_S)
        elif self._is_save_due(watched, now_s):
            await self._save(watched, lease, now_s)
        if now_s >= watched.timeline_due_s:
            await self._save_timeline(watched, lease, now_s)
        return True

    async def _take_over(self, watched: Watched, now_s: float) -> None:
        """Go on from what the owner before has stored; what it was about to ask for is over."""
        stored = await job_rows.find(self._db, watched.id)
        attempt = await job_rows.stored_attempt(self._db, watched.id)
        if stored is not None and attempt is not None:
            self._board.align(watched.id, attempt.attempt, attempt.processes, now_s)
            watched.verdict = watched.draft = stored.verdict
            watched.stored_key = verdicts.key(stored.verdict)
            await self._inherit(watched, attempt.attempt)
        watched.saved_s = watched.applied_key = None
        watched.timeline_due_s = now_s
        watched.is_followed = False
        self._following.leave(watched.id)
        self._keeper.forget(watched.id)
        _log.info("job_taken_over", job=watched.id, state=watched.verdict.state)

    async def _inherit(self, watched: Watched, attempt: int) -> None:
        active = await incident_rows.active(self._db, watched.id, attempt)
        if active is not None:
            watched.inherited = active
            watched.moment_key = moments.key(active)
            await self._captures.remember(active.id)

    async def _close_replaced(self, watched: Watched, lease: Lease) -> None:
        """Store how the attempts ended that a restart has replaced since the last look."""
        while watched.replaced:
            last = watched.replaced[0]
            incident = await self._keeper.close(lease, last, watched.snapshot.attempt)
            del watched.replaced[0]
            self._bus.publish(f"incident:{incident.id}", {"incident": incident.id})

    async def _apply(self, watched: Watched, decision: Decision, lease: Lease) -> Incident | None:
        """Bring the incident in line; a job that is over is settled once."""
        key = verdicts.key(watched.draft)
        is_settled = decision.state in _OVER and key == watched.applied_key
        if is_settled and watched.applied_over == decision.is_over:
            return watched.incident
        incident = await self._keeper.apply(lease, watched.id, decision, watched.draft)
        before = watched.incident
        watched.incident, watched.applied_over = incident, decision.is_over
        watched.applied_key = verdicts.key(
            dataclasses.replace(watched.draft, incident=incident.id if incident else None)
        )
        if incident is not None and (before is None or before.id != incident.id):
            await self._captures.remember(incident.id)
        for changed in {item.id for item in (before, incident) if item and before is not incident}:
            self._bus.publish(f"incident:{changed}", {"incident": changed})
        return incident

    async def _keep_moment(self, watched: Watched, incident: Incident, lease: Lease) -> None:
        """Store what the job looks like where the incident has just opened or changed."""
        why = moments.reason(watched.moment_key, incident)
        if not why:
            return
        made = await moments.of(watched, self._clock.now(), why)
        await moment_rows.add(self._db, incident.id, made, lease)
        watched.moment_key = moments.key(incident)
        self._bus.publish(f"incident:{incident.id}", {"incident": incident.id})

    async def _store_verdict(self, watched: Watched, lease: Lease) -> None:
        watched.draft = await job_rows.save_verdict(self._db, watched.draft, lease)
        watched.verdict = watched.draft
        watched.stored_key = verdicts.key(watched.draft)
        metrics.verdicts_changed.labels(watched.draft.state).inc()
        _log.info(
            "verdict_changed",
            job=watched.id,
            state=watched.draft.state,
            kind=watched.draft.kind,
            culprits=watched.draft.culprit_ranks,
            incident=watched.draft.incident or "",
            index=watched.draft.index,
        )
        self._bus.publish("jobs", {"job": watched.id})
        self._bus.publish(
            f"verdict:{watched.id}", {"job": watched.id, "index": str(watched.draft.index)}
        )

    async def _save(self, watched: Watched, lease: Lease, now_s: float) -> None:
        processes = self._board.processes(watched.id)
        job = watched.job_with(watched.draft, now_s)
        await job_rows.save(self._db, job, watched.meta.launch, processes, lease)
        watched.saved_s = now_s
        watched.saved_version = watched.meta.processes_version

    async def _save_timeline(self, watched: Watched, lease: Lease, now_s: float) -> None:
        points = rows.timeline(rows.thinned(watched.points), now_s)
        if points:
            await timelines.save(self._db, watched.id, points, lease)
        watched.timeline_due_s = now_s + SAVE_TIMELINE_EVERY_S

    @staticmethod
    def _is_save_due(watched: Watched, now_s: float) -> bool:
        if watched.saved_s is None or watched.saved_version != watched.meta.processes_version:
            return True
        return now_s - watched.saved_s >= SAVE_EVERY_S
