"""What people do about an incident: acknowledge, snooze, comment; each audited and shown at once.

The pages and the API do the same by these functions.
"""

from __future__ import annotations

from datetime import datetime

from hangwatch_server.bus import Bus
from hangwatch_server.db import audit, incidents
from hangwatch_server.db.engine import Database
from hangwatch_server.model import Incident


async def acknowledge(db: Database, bus: Bus, incident_id: str, by: str, comment: str) -> Incident:
    """Say that somebody looks after it; again is no error."""
    changed = await incidents.acknowledge(db, incident_id, by, comment)
    await _tell(db, bus, incident_id, by, "acknowledge", comment)
    return changed


async def snooze(
    db: Database, bus: Bus, incident_id: str, by: str, until: datetime, *, to_end: bool
) -> Incident:
    """Be silent until then, or with `to_end` until the job ends if that is sooner."""
    changed = await incidents.snooze(db, incident_id, by, until, to_end=to_end)
    detail = f"{'until the job ends, at the latest ' if to_end else ''}{until.isoformat()}"
    await _tell(db, bus, incident_id, by, "snooze", detail)
    return changed


async def comment(db: Database, bus: Bus, incident_id: str, by: str, text: str) -> Incident:
    """Leave a note; ended incidents take them too."""
    changed = await incidents.comment(db, incident_id, by, text)
    await _tell(db, bus, incident_id, by, "comment", text)
    return changed


async def _tell(
    db: Database, bus: Bus, incident_id: str, by: str, action: str, detail: str
) -> None:
    await audit.record(db, by, action, f"incident:{incident_id}", detail)
    bus.publish(f"incident:{incident_id}", {"incident": incident_id})
