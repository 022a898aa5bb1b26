"""Looks at what is to be told, and writes it into the outbox. What is due, pure modules decide.

Per look without channels: three statements. With channels and nothing to tell: three, and two more
where a channel asks for stragglers. Any number of servers may plan at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime

from hangwatch_server import logs, metrics
from hangwatch_server.alerts import frames, messages, notices, planning
from hangwatch_server.alerts.planning import Rules
from hangwatch_server.db import blind_spells, outbox, slow_notices
from hangwatch_server.db import channels as channel_rows
from hangwatch_server.db import incidents as incident_rows
from hangwatch_server.db import jobs as job_rows
from hangwatch_server.db import silences as silence_rows
from hangwatch_server.db.engine import Database
from hangwatch_server.errors import HangwatchError
from hangwatch_server.model import Job
from hangwatch_server.model.alerts import BlindSpell, Channel, Message, Topic
from hangwatch_server.model.outbox import Case, Due, Told

# A slow job runs, and so is heard of every few seconds.
SLOW_HEARD_WITHIN_S = 120.0
# Of many hangs, the first are told while the messages of the others are still written.
INCIDENTS_AT_ONCE = 50
_WITH_HISTORY = (Topic.ACKNOWLEDGED, Topic.RESOLVED)
Planned = list[tuple[Due, Message]]
ByChannel = dict[tuple[str, str], list[Told]]  # what it is about and the channel -> what was told
_log = logs.get()


class Planner:
    """Plans what incidents, stragglers and the monitor's own blindness ask for."""

    def __init__(
        self,
        db: Database,
        rules: Rules,
        base_url: str,
        note: Callable[[str], None] | None = None,
    ) -> None:
        """`note` is told each incident of which something is planned."""
        self._db, self._rules, self._base_url, self._note = db, rules, base_url, note

    async def plan(self) -> int:
        """Write all that is due now; how many messages are new."""
        channels = await channel_rows.enabled(self._db)
        if not channels:
            await self._pass_over()
            return 0
        count, last = 0, None
        while True:
            cases, now = await outbox.cases(self._db, last)
            if cases:
                count += await self._plan_cases(cases, channels, now)
            if len(cases) < outbox.CASES_AT_ONCE:
                break
            last = cases[-1]
        return count + await self._plan_notices(channels)

    async def _pass_over(self) -> None:
        """With nobody to tell, what is over is done with: a channel to come is not told of it."""
        await outbox.close_over(self._db, planning.REOPENED_BY_S)
        await blind_spells.close_over(self._db)

    async def _plan_cases(
        self, cases: Sequence[Case], channels: Sequence[Channel], now: datetime
    ) -> int:
        silences = await silence_rows.standing(self._db)
        told = _by_channel(await outbox.told(self._db, [case.id for case in cases]))
        due: dict[str, list[Due]] = defaultdict(list)
        for case in cases:
            about = messages.about_incident(case.id)
            for channel in channels:
                before = told[about, channel.id]
                due[case.id] += planning.due(case, channel, before, silences, self._rules, now)
        count = 0
        wanted = [incident for incident, found in due.items() if found]
        for start in range(0, len(wanted), INCIDENTS_AT_ONCE):
            some = wanted[start : start + INCIDENTS_AT_ONCE]
            count += await self._put({incident: due[incident] for incident in some}, now)
        closed = [case.id for case in cases if planning.is_closed(case, now)]
        if closed:
            await outbox.close(self._db, closed)
        return count

    async def _put(self, due: dict[str, list[Due]], now: datetime) -> int:
        """Write what is due of these incidents; one that cannot be told keeps no other from it."""
        try:
            count = await outbox.put(self._db, await self._of_incidents(due, now))
            if self._note is not None and count:
                for incident in due:
                    self._note(incident)
            return count
        except HangwatchError:
            raise
        except Exception:
            # The boundary of one incident: what a hostile job or another version left in it, or a
            # channel that is deleted just now, must not silence all.
            if len(due) == 1:
                metrics.watch_failures.inc()
                _log.exception("incident_not_planned", incident=next(iter(due)))
                return 0
        count = 0
        for incident, found in due.items():
            count += await self._put({incident: found}, now)
        return count

    async def _of_incidents(self, due: dict[str, list[Due]], now: datetime) -> Planned:
        """Each message as it will be sent, however often that takes.

        In the order of `due`, the same on every server, so that two never wait for each other.
        """
        planned = []
        stored = await incident_rows.several(self._db, due)
        for incident in (stored[found] for found in due if found in stored):
            stack = await frames.of_culprit(self._db, incident)
            if any(one.topic in _WITH_HISTORY for one in due[incident.id]):
                # It holds what they said, and a thread ends with it.
                incident = await incident_rows.find(self._db, incident.id) or incident
            planned += [
                (one, messages.of_incident(one.topic, incident, self._base_url, now, stack))
                for one in due[incident.id]
            ]
        return planned

    async def _plan_notices(self, channels: Sequence[Channel]) -> int:
        spells = await blind_spells.to_tell(self._db)
        jobs = await self._slow_jobs(channels)
        planned = await self._of_caught_up(jobs, channels)
        if spells or jobs:
            planned += await self._of_notices(spells, jobs, channels)
        count = await outbox.put(self._db, planned) if planned else 0
        over = [spell.id for spell in spells if spell.ended_at is not None]
        if over:
            await blind_spells.close(self._db, over)
        return count

    async def _slow_jobs(self, channels: Sequence[Channel]) -> list[Job]:
        if not any(Topic.SLOW in channel.topics for channel in channels):
            return []
        return await job_rows.slow(self._db, heard_within_s=SLOW_HEARD_WITHIN_S)

    async def _of_caught_up(self, slow: Sequence[Job], channels: Sequence[Channel]) -> Planned:
        """Ends of notices about stragglers; `slow` are the jobs that are slow now."""
        if not any(Topic.SLOW in channel.topics for channel in channels):
            return []
        standing = await slow_notices.standing(self._db, [messages.about_slow(job) for job in slow])
        if not standing:
            return []
        now, by_id = await outbox.now(self._db), {channel.id: channel for channel in channels}
        found = await job_rows.several(
            self._db, {messages.job_of_slow(one.about) for one in standing}
        )
        jobs = {job.id: job for job in found}
        planned: Planned = []
        for one in standing:
            job, channel = jobs.get(messages.job_of_slow(one.about)), by_id.get(one.channel)
            if job is None or channel is None:
                continue
            for due in notices.of_caught_up(one, job, channel, now):
                planned.append((due, messages.of_caught_up(one, job, self._base_url, now)))
        return planned

    async def _of_notices(
        self, spells: Sequence[BlindSpell], jobs: Sequence[Job], channels: Sequence[Channel]
    ) -> Planned:
        now, silences = await outbox.now(self._db), await silence_rows.standing(self._db)
        abouts = [*map(messages.about_spell, spells), *map(messages.about_slow, jobs)]
        told = _by_channel(await outbox.told_about(self._db, abouts))
        planned: Planned = []
        for channel in channels:
            for spell in spells:
                before = told[messages.about_spell(spell), channel.id]
                for due in notices.of_spell(spell, channel, before, silences, now):
                    message = messages.of_spell(due.topic, spell, self._base_url, now)
                    planned.append((due, message))
            for job in jobs:
                before = told[messages.about_slow(job), channel.id]
                for due in notices.of_slow_job(job, channel, before, silences, now):
                    planned.append((due, messages.of_slow_job(job, self._base_url, now)))
        return planned


def _by_channel(told: Sequence[Told]) -> ByChannel:
    found: ByChannel = defaultdict(list)
    for one in told:
        found[one.about, one.channel].append(one)
    return found
