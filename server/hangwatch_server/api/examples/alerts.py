"""Silences and deliveries."""

from __future__ import annotations

from hangwatch_server.api.examples.incidents import INCIDENT
from hangwatch_server.api.examples.responses import Json
from hangwatch_server.api.examples.verdicts import VERDICT

SILENCE: Json = {
    "id": "5d2f9c31aa07",
    "matchers": [{"field": "node", "pattern": "rack-7-*"}],
    "starts_at": "2026-11-21T02:00:00Z",
    "ends_at": "2026-11-21T04:00:00Z",
    "repeat": "weekly",
    "created_at": "2026-11-20T17:40:00Z",
    "created_by": "alice",
    "comment": "firmware of rack 7",
    "cancelled_at": None,
}
CANCELLED: Json = {**SILENCE, "cancelled_at": "2026-11-20T18:02:00Z"}
DELIVERY_SUMMARY: Json = {
    "id": "msg_9c41d02e77b5a6e1f3c8",
    "channel": "a1b2c3d4e5f6",
    "channel_name": "training-oncall",
    "topic": "opened",
    "number": 0,
    "about": f"incident:{INCIDENT['id']}",
    "incident": INCIDENT["id"],
    "title": "Rank 5 (node-b, pid 812) never entered all_reduce #29 of group dp-1 · gpt-7b",
    "state": "sent",
    "reason": "",
    "tries": 2,
    "created_at": "2026-11-20T18:00:28Z",
    "next_at": None,
    "sent_at": "2026-11-20T18:00:30Z",
}
DELIVERY: Json = {
    **DELIVERY_SUMMARY,
    "attempts": [
        {
            "at": "2026-11-20T18:00:28Z",
            "status": 503,
            "error": "the receiver answered 503 Service Unavailable",
            "took_s": 0.2,
        },
        {"at": "2026-11-20T18:00:30Z", "status": 200, "error": "", "took_s": 0.1},
    ],
    "message": {
        "id": DELIVERY_SUMMARY["id"],
        "topic": "opened",
        "at": "2026-11-20T18:00:28Z",
        "about": DELIVERY_SUMMARY["about"],
        "title": DELIVERY_SUMMARY["title"],
        "text": VERDICT["summary"],
        "url": f"https://hangwatch.example/incidents/{INCIDENT['id']}",
        "incident": INCIDENT,
        "stack": ["train.py:88 in __getitem__"],
    },
}
