"""Alerts as the server runs them: planning, sending, and the watch over the watcher."""

from __future__ import annotations

import asyncio

from hangwatch_server import logs, metrics
from hangwatch_server.alerts.monitor import TICK_S, Heartbeat, Monitor, Patience, Senses
from hangwatch_server.alerts.outgoing import Outgoing
from hangwatch_server.alerts.planner import Planner
from hangwatch_server.alerts.planning import Rules
from hangwatch_server.alerts.senders import Senders
from hangwatch_server.alerts.speaker import Speaker
from hangwatch_server.alerts.worker import Pace, Worker
from hangwatch_server.background import Background
from hangwatch_server.bus import Bus
from hangwatch_server.clock import Clock
from hangwatch_server.db.engine import Database
from hangwatch_server.errors import HangwatchError
from hangwatch_server.settings import ServerSettings
from hangwatch_server.settings.address import url_of

# Planning that failed for so long counts as not telling: the heartbeat stops.
TELLING_WITHIN_S = 30.0
# Three looks of the monitor, until another server speaks for all.
SPEAKS_S = 3 * TICK_S
_log = logs.get()


class Alerts:
    """Its tasks run in the server's background."""

    def __init__(
        self,
        *,
        db: Database,
        senders: Senders,
        trusted: Outgoing,
        settings: ServerSettings,
        clock: Clock,
        senses: Senses,
        bus: Bus,
    ) -> None:
        """`trusted` goes to addresses that the settings themselves name, inside ones too."""
        self._settings, self._clock, self._trusted = settings, clock, trusted
        self._planned_s = clock.monotonic_s()
        self._bus = bus
        rules = Rules(settle_s=settings.alert_settle_s)
        self.planner = Planner(db, rules, url_of(settings), self._note)
        pace = Pace(
            tick_s=settings.alert_tick_s,
            claim_s=settings.alert_claim_s,
            retry_s=settings.alert_retry_s,
        )
        self.worker = Worker(db, senders, pace, note=self._note)
        self.monitor = Monitor(
            db=db,
            senses=senses,
            patience=Patience(
                after_s=settings.blind_after_s,
                share=settings.blind_share,
                heard_within_s=settings.blind_forget_s,
            ),
            clock=clock,
            is_telling=self.is_telling,
            speaker=Speaker(db, senses.server, SPEAKS_S),
        )

    def start(self, background: Background) -> None:
        background.start("alerts", self._plan)
        background.start("outbox", self.worker.run)
        background.start("sight", self.monitor.run)
        if self._settings.heartbeat_url:
            background.start("heartbeat", self._heartbeat().run)

    def is_telling(self) -> bool:
        """Whether what is to be told was looked at just now."""
        return self._clock.monotonic_s() - self._planned_s < TELLING_WITHIN_S

    def _note(self, incident: str) -> None:
        """Pages show what was told of it."""
        self._bus.publish(f"incident:{incident}", {"incident": incident})

    async def _plan(self) -> None:
        while True:
            try:
                if await self.planner.plan():
                    self.worker.wake()
                self._planned_s = self._clock.monotonic_s()
            except HangwatchError as error:
                # What is due is still due at the next look.
                metrics.database_failures.inc()
                _log.warning("alerts_not_planned", error=str(error))
            await asyncio.sleep(self._settings.alert_tick_s)

    def _heartbeat(self) -> Heartbeat:
        return Heartbeat(
            monitor=self.monitor,
            outgoing=self._trusted,
            url=self._settings.heartbeat_url,
            interval_s=self._settings.heartbeat_interval_s,
        )
