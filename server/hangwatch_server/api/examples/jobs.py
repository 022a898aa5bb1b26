"""A job and a point of its timeline."""

from __future__ import annotations

from hangwatch_server.api.examples.responses import TIME, Json
from hangwatch_server.api.examples.verdicts import VERDICT

JOB: Json = {
    "id": "b3f1c07a9d24",
    "name": "gpt-7b",
    "attempt": 1,
    "world_size": 8,
    "reporting": 8,
    "state": "hung",
    "verdict": VERDICT,
    "nodes": ["node-a", "node-b"],
    "depth": "probe",
    "first_seen": "2026-11-20T17:02:11Z",
    "last_seen": TIME,
    "progress_age_s": 12.4,
    "script": "train.py",
    "step": 1830,
    "is_live": True,
}
TIMELINE_POINT: Json = {
    "ago_s": 30.0,
    "calls_per_s": 41.5,
    "state": "healthy",
    "phase": "checkpoint",
    "attempt": 1,
}
