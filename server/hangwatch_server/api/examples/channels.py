"""Channels and their kinds."""

from __future__ import annotations

from hangwatch_server.api.examples.responses import Json

CHANNEL: Json = {
    "id": "4be1c07a9d24",
    "name": "on-call",
    "kind": "slack_bot",
    "options": {"channel": "#training-alerts", "mention": "here"},
    "secret_names": ["token"],
    "topics": ["opened", "reminder", "acknowledged", "resolved", "blind", "sighted"],
    "matchers": [{"field": "job", "pattern": "gpt-*"}],
    "after_s": 0,
    "remind_s": 1800,
    "is_enabled": True,
    "disabled_reason": "",
    "created_at": "2026-11-20T17:02:11Z",
    "created_by": "alice",
    "target": "#training-alerts",
}
CHANNEL_KIND: Json = {
    "kind": "slack_bot",
    "label": "Slack, by bot",
    "about": "One message per incident that is edited as it goes on, with its history in the "
    "thread.",
    "fields": [
        {
            "name": "token",
            "label": "Bot token",
            "help": "of an app with the scope chat:write, from its page OAuth & Permissions",
            "example": "xoxb-…",
            "is_secret": True,
            "is_required": True,
            "choices": [],
        }
    ],
}
CHANNEL_TRIAL: Json = {
    "is_accepted": False,
    "status": 200,
    "error": "the bot is not in the Slack channel: /invite it there (not_in_channel)",
    "took_s": 0.312,
}
