"""Tokens, the audit trail and settings."""

from __future__ import annotations

from hangwatch_server.api.examples.responses import TIME, Json

TOKEN: Json = {
    "id": "t_51ab",
    "name": "node-b",
    "prefix": "0a1b2c3d",
    "scopes": ["agent"],
    "role": "agent",
    "node": "node-b",
    "created_at": TIME,
    "last_used_at": None,
    "expires_at": None,
    "is_revoked": False,
    "jobs": "",
    "nodes": "",
    "uses_left": None,
    "may_replace": False,
    "enrolled_by": None,
}
NEW_TOKEN: Json = {**TOKEN, "token": "hw_0a1b2c3d_…"}
AUDIT: Json = {
    "at": TIME,
    "who": "alice",
    "action": "capture",
    "subject": "job:b3f1c07a9d24",
    "detail": "c_91d2",
}
SETTING: Json = {
    "key": "port",
    "value": "8042",
    "source": "environment HANGWATCH_PORT",
    "is_default": False,
    "help": "port to listen on",
    "why": "unassigned, and free on most machines",
}
