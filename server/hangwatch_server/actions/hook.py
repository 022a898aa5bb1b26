"""Runs the operator's command on hangs that stand: which ones, how often, and what came of it.

Off unless a command is set; then a verdict is more than advice. Level-triggered by the incidents'
rows, so that a server that was away misses none. At most once per incident: see `db.actions`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Protocol

from hangwatch_server import logs, metrics
from hangwatch_server.actions import command, document
from hangwatch_server.actions.command import Ended
from hangwatch_server.bus import Bus
from hangwatch_server.db import actions as rows
from hangwatch_server.db import audit
from hangwatch_server.db.engine import Database
from hangwatch_server.errors import HangwatchError, NotFoundError
from hangwatch_server.model import Incident, Job, State
from hangwatch_server.model.actions import ActionState
from hangwatch_server.settings import ServerSettings

EVERY_S = 2.0
REST_S = 0.2  # where many verdicts change at once, one look serves them all
# Beyond the time that a command may take, until its server counts as gone.
CLAIM_GRACE_S = 30.0
SHOWN_OUTPUT = 500
BY = "hangwatch"
_log = logs.get()


class Jobs(Protocol):
    """Where a job's present verdict is read; `watch` offers it."""

    async def job(self, job_id: str) -> Job: ...

    def is_ours(self, job_id: str) -> bool: ...


class Hook:
    """One server's part in acting on hangs; several servers share the rows."""

    def __init__(self, db: Database, bus: Bus, jobs: Jobs, settings: ServerSettings) -> None:
        self._db, self._bus, self._jobs, self._settings = db, bus, jobs, settings
        self._command: Sequence[str] = command.words(settings.action_command)
        self._limits = rows.Limits(
            per_hour=settings.action_per_hour,
            per_job_per_hour=settings.action_per_job_per_hour,
        )

    @property
    def is_on(self) -> bool:
        return bool(self._command)

    async def run(self) -> None:
        """Look for hangs to act on until cancelled, at once when a verdict changes.

        One command at a time.
        """
        with self._bus.subscribe(("jobs",)) as changes:
            while True:
                try:
                    await self.look()
                except HangwatchError as error:
                    metrics.database_failures.inc()
                    _log.warning("actions_put_off", error=str(error))
                await changes.next(EVERY_S)
                await asyncio.sleep(REST_S)
                changes.skip()

    async def look(self) -> None:
        """Act on every hang that asks for it now."""
        for lost in await rows.declare_lost(self._db):
            self._note(lost, ActionState.LOST)
        for incident in await rows.candidates(self._db, self._settings.action_settle_s):
            job = await self._hung(incident)
            if job is not None:
                await self._act(incident, job)

    async def _hung(self, incident: Incident) -> Job | None:
        """The job, when its hang is seen at this very moment and is sure enough.

        A row may be old: of a job whose agents have not come back since this server was restarted.
        """
        try:
            job = await self._jobs.job(incident.job)
        except NotFoundError:
            return None
        verdict = job.verdict
        is_hung = verdict.state is State.HUNG and verdict.incident == incident.id
        is_sure = verdict.confidence >= self._settings.action_min_confidence
        # Of a job that another server owns this one shows what was stored, whatever it sees itself.
        return job if is_hung and is_sure and self._jobs.is_ours(incident.job) else None

    async def _act(self, incident: Incident, job: Job) -> None:
        claim = await rows.claim(
            self._db,
            incident,
            self._command,
            self._limits,
            for_s=self._settings.action_timeout_s + CLAIM_GRACE_S,
            is_dry_run=self._settings.action_dry_run,
        )
        if claim is None:
            return
        subject = f"incident:{incident.id}"
        await audit.record(self._db, BY, f"action.{claim.state}", subject, " ".join(self._command))
        self._note(incident.id, claim.state)
        if claim.state is not ActionState.RUNNING:
            return
        begun_s = time.monotonic()
        ended = await self._ended(incident, job)
        why = _told(ended, time.monotonic() - begun_s)
        await rows.finish(self._db, claim, ended.state, ended.exit_code, ended.output, why)
        await audit.record(self._db, BY, f"action.{ended.state}", subject, why)
        self._note(incident.id, ended.state)

    async def _ended(self, incident: Incident, job: Job) -> Ended:
        base = self._settings.public_url.rstrip("/")
        url = f"{base}/incidents/{incident.id}" if base else ""
        return await command.run(
            self._command,
            document.of(incident, job, url),
            document.environment(incident, url),
            self._settings.action_timeout_s,
        )

    def _note(self, incident: str, state: ActionState) -> None:
        metrics.actions.labels(state.value).inc()
        _log.info("action", incident=incident, state=state.value)
        self._bus.publish(f"incident:{incident}", {"incident": incident})


def _told(ended: Ended, took_s: float) -> str:
    """The end of a command as a line of history."""
    how = "ended by the server" if ended.exit_code is None else f"exit code {ended.exit_code}"
    output = " ".join(ended.output.split())
    shown = f"…{output[-SHOWN_OUTPUT:]}" if len(output) > SHOWN_OUTPUT else output
    return f"{how} after {took_s:.1f} s{': ' if shown else ''}{shown}"
