"""When to keep what a job looks like beside its incident: as it opens, is confirmed or changes."""

from __future__ import annotations

import asyncio
from datetime import datetime

from hangwatch_server import diagnose
from hangwatch_server.model import ACTIVE_INCIDENTS, Incident, IncidentState, Kind, Moment
from hangwatch_server.watch.watched import Watched

Key = tuple[str, IncidentState, Kind, str]


def key(incident: Incident) -> Key:
    """A moment is kept whenever this changes, while the incident is active."""
    return incident.id, incident.state, incident.kind, incident.culprit_ranks


def reason(before: Key | None, incident: Incident) -> str:
    """Why a moment is to be kept now; "" when none is."""
    if incident.state not in ACTIVE_INCIDENTS or before == key(incident):
        return ""
    if before is not None and before[:2] == (incident.id, incident.state):
        return "changed"
    return "opened" if incident.state is IncidentState.OPEN else "confirmed"


async def of(watched: Watched, at: datetime, why: str) -> Moment:
    snapshot, finding = watched.snapshot, watched.finding
    if watched.is_large:
        return await asyncio.to_thread(diagnose.moment, snapshot, finding, at, why)
    return diagnose.moment(snapshot, finding, at, why)
