"""A node."""

from __future__ import annotations

from hangwatch_server.api.examples.responses import TIME, Json

NODE: Json = {
    "name": "node-b",
    "link": "live",
    "version": "0.1.0",
    "age_s": 0.4,
    "ranks": 4,
    "jobs": ["b3f1c07a9d24"],
    "stacks": "",
    "stacks_remedy": "",
    "depth": "probe",
    "incidents_30d": 1,
    "dropped": 0,
    "last_seen": TIME,
    "gpu_hours_lost_30d": 1.4,
    "last_incident_at": TIME,
    "clock_ahead_s": None,
}
