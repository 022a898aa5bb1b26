"""Looks at what is to be told, and writes it into the outbox. What is due, the pure modules decide.

Per look, with channels and no confirmed incident: two statements. Without channels: one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from hangwatch_server import logs
from hangwatch_server.alerts import messages, planning
from hangwatch_server.alerts.planning import Rules
from hangwatch_server.db import channels as channel_rows
from hangwatch_server.db import incidents as incident_rows
from hangwatch_server.db import outbox
from hangwatch_server.db import silences as silence_rows
from hangwatch_server.db.engine import Database
from hangwatch_server.model import Incident
from hangwatch_server.model.alerts import Channel, Message, Silence
from hangwatch_server.model.outbox import Case, Due, Told

_log = logs.get()


class Planner:
    """Plans what incidents ask for; any number of servers may do so at once."""

    def __init__(self, db: Database, rules: Rules, base_url: str) -> None:
        self._db, self._rules, self._base_url = db, rules, base_url

    async def plan(self) -> int:
        """Write all that is due now; how many messages are new."""
        channels = await channel_rows.enabled(self._db)
        if not channels:
            return 0
        count, last, silences = 0, None, None
        while True:
            cases, now = await outbox.cases(self._db, last)
            if not cases:
                return count
            if silences is None:
                silences = await silence_rows.standing(self._db)
            count += await self._plan_some(cases, channels, silences, now)
            if len(cases) < outbox.CASES_AT_ONCE:
                return count
            last = cases[-1]

    async def _plan_some(
        self,
        cases: Sequence[Case],
        channels: Sequence[Channel],
        silences: Sequence[Silence],
        now: datetime,
    ) -> int:
        told: dict[tuple[str, str], list[Told]] = defaultdict(list)
        for one in await outbox.told(self._db, [case.id for case in cases]):
            told[one.about, one.channel].append(one)
        due = {
            case.id: [
                found
                for channel in channels
                for found in planning.due(
                    case,
                    channel,
                    told[messages.about_incident(case.id), channel.id],
                    silences,
                    self._rules,
                    now,
                )
            ]
            for case in cases
        }
        closed = [case.id for case in cases if planning.is_closed(case, now)]
        wanted = {incident: found for incident, found in due.items() if found}
        if not wanted and not closed:
            return 0
        return await outbox.put(self._db, await self._written(wanted, now), closed)

    async def _written(self, due: dict[str, list[Due]], now: datetime) -> list[tuple[Due, Message]]:
        """Each message as it will be sent, however often that takes."""
        incidents = await incident_rows.several(self._db, due.keys())
        return [
            (one, self._message(one, incidents[incident_id], now))
            for incident_id, found in due.items()
            if incident_id in incidents
            for one in found
        ]

    def _message(self, due: Due, incident: Incident, now: datetime) -> Message:
        if due.held:
            _log.info("alert_held_back", incident=incident.id, channel=due.channel, reason=due.held)
        return messages.of_incident(due.topic, incident, self._base_url, now)
