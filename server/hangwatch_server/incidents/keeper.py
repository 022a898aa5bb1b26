"""Carries out what `lifecycle` says on the stored incidents, under the lease of the detection.

Remembers what is stored of each job while its lease token stands, so that a healthy job costs no
query. The memory may miss what people did (acknowledge, snooze); it decides nothing by that.
"""

from __future__ import annotations

import dataclasses
from typing import Protocol

import structlog

from hangwatch_server.db import incidents
from hangwatch_server.db.engine import Database
from hangwatch_server.db.leases import Lease
from hangwatch_server.incidents import lifecycle
from hangwatch_server.incidents.lifecycle import Action, Known, Step
from hangwatch_server.model import ACTIVE_INCIDENTS, Incident, IncidentState, State, Verdict

log = structlog.get_logger(__name__)

_MAY_REOPEN = (State.SUSPECTED, State.HUNG, State.FAILED)


class Decided(Protocol):
    """The part of detection's decision that incidents follow."""

    @property
    def state(self) -> State: ...

    @property
    def reason(self) -> str: ...

    @property
    def is_over(self) -> bool: ...


@dataclasses.dataclass(frozen=True, slots=True)
class _Memory:
    token: int
    attempt: int
    known: Known


def _named(decision: Decided, known: Known) -> Incident | None:
    """The incident that the verdict should name: of a job that is over, the one that it ended."""
    newest = known.newest
    has_ended = newest is not None and newest.state is IncidentState.ENDED
    if decision.state is State.FAILED or (decision.state is State.UNKNOWN and has_ended):
        return newest
    return known.active


class Keeper:
    """Keeps the incidents of the jobs that this server watches."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._memory: dict[str, _Memory] = {}

    async def apply(
        self, lease: Lease, job: str, decision: Decided, verdict: Verdict
    ) -> Incident | None:
        """Bring the job's incident in line with the decision; give the one the verdict should name.

        Raises StaleLeaseError when another server has taken the job over.
        """
        memory = self._memory.pop(job, None)  # put back only if all below succeeds
        if memory is None or (memory.token, memory.attempt) != (lease.token, verdict.attempt):
            memory = await self._load(lease, job, verdict.attempt)
        known = memory.known
        if known.active is None and decision.state in _MAY_REOPEN:
            recent = await incidents.recent(
                self._db, job, verdict.attempt, lifecycle.REOPEN_WITHIN_S
            )
            known = dataclasses.replace(known, recent=recent)
        for step in lifecycle.steps(
            decision.state, decision.reason, verdict, known, is_over=decision.is_over
        ):
            known = await self._take(lease, step, verdict, known)
        self._memory[job] = dataclasses.replace(memory, known=known)
        return _named(decision, known)

    async def close(self, lease: Lease, last: Verdict, attempt: int) -> Incident:
        """See to it that an attempt which `attempt` has replaced leaves one incident that is over.

        `last` is what was known of it: it becomes a record where no incident tells of its end.
        """
        reason = lifecycle.restarted(attempt)
        newest = await incidents.newest(self._db, last.job, last.attempt)
        if newest is not None and newest.state in ACTIVE_INCIDENTS:
            return await incidents.end(self._db, lease, newest.id, IncidentState.ENDED, reason)
        if newest is not None and newest.end_reason == reason:
            return newest
        if newest is not None and newest.state is IncidentState.ENDED:
            return await incidents.explain(self._db, lease, newest.id, reason)
        return await incidents.record_failure(self._db, lease, last, last.summary, reason)

    def forget(self, job: str) -> None:
        """Drop what is remembered of a job that is deleted or watched elsewhere."""
        self._memory.pop(job, None)

    async def _load(self, lease: Lease, job: str, attempt: int) -> _Memory:
        """Read what is stored, and end what an earlier attempt has left active."""
        active = await incidents.active_of_job(self._db, job)
        for old in lifecycle.left_behind(active, attempt):
            reason = lifecycle.restarted(attempt)
            await incidents.end(self._db, lease, old.id, IncidentState.ENDED, reason)
            log.info("incident ended", incident=old.id, job=job, reason=reason)
        own = next((incident for incident in active if incident.attempt == attempt), None)
        newest = own or await incidents.newest(self._db, job, attempt)
        return _Memory(lease.token, attempt, Known(active=own, newest=newest))

    async def _take(self, lease: Lease, step: Step, verdict: Verdict, known: Known) -> Known:
        incident = await self._write(lease, step, verdict, known)
        if step.action is not Action.UPDATE:
            log.info(
                f"incident {step.action}",
                incident=incident.id,
                job=incident.job,
                state=incident.state,
                why=step.why,
            )
        is_active = incident.state in ACTIVE_INCIDENTS
        return Known(active=incident if is_active else None, newest=incident)

    async def _write(self, lease: Lease, step: Step, verdict: Verdict, known: Known) -> Incident:
        match step.action:
            case Action.OPEN:
                return await incidents.open_incident(self._db, lease, verdict, step.why)
            case Action.RECORD:
                return await incidents.record_failure(self._db, lease, verdict, step.why)
            case Action.REOPEN:
                assert known.recent is not None  # lifecycle reopens only what it was shown
                return await incidents.reopen(self._db, lease, known.recent.id, verdict, step.why)
        assert known.active is not None  # every other step changes the active incident
        incident_id = known.active.id
        match step.action:
            case Action.CONFIRM:
                return await incidents.confirm(self._db, lease, incident_id, verdict, step.why)
            case Action.UPDATE:
                return await incidents.update(self._db, lease, incident_id, verdict, step.why)
            case Action.END:
                assert step.state is not None  # lifecycle says how it ends
                return await incidents.end(self._db, lease, incident_id, step.state, step.why)
