"""Watches the watcher: keeps the record of blind spells, and beats outside while it can judge.

It looks at rows and at what it is handed of this process. What it finds is told as any alert is; a
server that can tell nothing any more is noticed by its heartbeat, which then stops. Of several
servers one speaks of what all of them see, and beats; each speaks of its own tasks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from hangwatch_server import durations, logs, metrics
from hangwatch_server.alerts import sight
from hangwatch_server.alerts.outgoing import Outgoing
from hangwatch_server.alerts.sight import Facts
from hangwatch_server.alerts.speaker import Speaker
from hangwatch_server.clock import Clock
from hangwatch_server.db import blind_spells, claims
from hangwatch_server.db import jobs as job_rows
from hangwatch_server.db.engine import Database
from hangwatch_server.errors import DatabaseError, HangwatchError
from hangwatch_server.model.alerts import BlindCause

TICK_S = 5.0
# Of a single job: the server judges all others.
_PARTIAL = (BlindCause.COVERAGE,)
# What each server says of itself.
_OWN = (BlindCause.SERVER,)
_log = logs.get()


@dataclass(frozen=True, slots=True, kw_only=True)
class Senses:
    """What this process knows of itself, as functions so that this room need not know whose."""

    server: str  # name of this run of this server
    living: Callable[[], Awaitable[frozenset[str]]]  # of all servers that run now
    agents: Callable[[], int]  # that are heard now
    failing: Callable[[], tuple[str, ...]]  # tasks of the server


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long and how much may be out of sight."""

    after_s: float
    share: float
    heard_within_s: float  # a job not heard for longer is gone


@dataclass
class Monitor:
    """One per server."""

    db: Database
    senses: Senses
    patience: Patience
    clock: Clock
    is_telling: Callable[[], bool]  # whether alerts were planned just now
    speaker: Speaker
    _judged_until_s: float = float("-inf")
    _since_s: dict[tuple[BlindCause, str], float] = field(default_factory=dict)
    _away_since_s: float | None = None

    @property
    def can_judge(self) -> bool:
        """Whether a look has just found that jobs are judged and people told; one may hang."""
        return self.clock.monotonic_s() < self._judged_until_s

    async def run(self) -> None:
        try:
            while True:
                await self.look()
                await asyncio.sleep(TICK_S)
        finally:
            self._judged_until_s = float("-inf")
            await self.speaker.stop()

    async def look(self) -> None:
        """Bring the record of blind spells in line with what is seen now."""
        now_s = self.clock.monotonic_s()
        try:
            facts = await self._facts()
            is_able = not facts.failing and self.is_telling()
            speaks = await self.speaker.speaks(can=is_able)
            await self._note_return(now_s, speaks=speaks)
            standing = await self._update(facts, now_s, speaks=speaks)
            await self._measure()
        except DatabaseError as error:
            self._judged_until_s = float("-inf")
            metrics.is_blind.set(1)
            if self._away_since_s is None:
                self._away_since_s = now_s
                _log.warning("monitor_has_no_database", error=str(error))
            return
        metrics.is_blind.set(1 if standing else 0)
        can_judge = speaks and all(cause in _PARTIAL for cause in standing)
        self._judged_until_s = now_s + 3 * TICK_S if can_judge else float("-inf")

    async def _facts(self) -> Facts:
        return Facts(
            server=self.senses.server,
            living=await self.senses.living(),
            agents=self.senses.agents(),
            jobs=await job_rows.seen(self.db, heard_within_s=self.patience.heard_within_s),
            failing=self.senses.failing(),
        )

    async def _note_return(self, now_s: float, *, speaks: bool) -> None:
        since_s = self._away_since_s
        was_long = since_s is not None and now_s - since_s >= self.patience.after_s
        if since_s is not None and was_long and speaks:
            text = sight.away(durations.spoken(now_s - since_s))
            await blind_spells.record(self.db, BlindCause.DATABASE, text, now_s - since_s)
        self._away_since_s = None

    async def _update(self, facts: Facts, now_s: float, *, speaks: bool) -> tuple[BlindCause, ...]:
        """End what is over and begin what has lasted; the causes that stand then."""
        present = sight.symptoms(facts, self.patience.share)
        self._since_s = sight.still_since(self._since_s, present, now_s)
        spells = [spell for spell in await blind_spells.to_tell(self.db) if not spell.ended_at]
        over = [
            spell
            for spell in spells
            if (speaks or spell.cause in _OWN) and sight.is_over(spell, facts, present)
        ]
        for spell in over:
            why = sight.why_over(spell, facts, durations.spoken(self.patience.heard_within_s))
            await blind_spells.end(self.db, spell.id, why)
            _log.warning("blind_no_more", cause=spell.cause, text=spell.text, why=why or "it sees")
        standing = {(spell.cause, spell.subject) for spell in spells if spell not in over}
        for symptom in present:
            age_s = now_s - self._since_s[symptom.key]
            is_told = symptom.key in standing or not (speaks or symptom.cause in _OWN)
            if age_s < self.patience.after_s or is_told:
                continue
            await blind_spells.begin(
                self.db, symptom.cause, symptom.subject, symptom.job_name, symptom.text, age_s
            )
            standing.add(symptom.key)
            _log.warning("monitor_is_blind", cause=symptom.cause, text=symptom.text)
        return tuple(cause for cause, _ in standing)

    async def _measure(self) -> None:
        backlog = await claims.backlog(self.db)
        metrics.alerts_pending.set(backlog.pending)
        metrics.alerts_oldest_pending_seconds.set(backlog.oldest_age_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """A POST at a steady pace for as long as the monitor can judge: its absence is the alarm."""

    monitor: Monitor
    outgoing: Outgoing
    url: str
    interval_s: float

    async def run(self) -> None:
        while True:
            if self.monitor.can_judge:
                await self._beat()
                await asyncio.sleep(self.interval_s)
            else:
                await asyncio.sleep(min(self.interval_s, TICK_S))

    async def _beat(self) -> None:
        try:
            answer = await self.outgoing.post(self.url, b"", {})
        except HangwatchError as error:
            _log.warning("heartbeat_not_heard", error=str(error))
            return
        if not answer.is_accepted:
            _log.warning("heartbeat_refused", status=answer.status)
