"""What orchestrators read."""

from __future__ import annotations

from hangwatch_server.api.examples.responses import Json

HEALTH: Json = {"status": "ok", "version": "0.1.0"}
READINESS: Json = {
    "status": "ready",
    "database": "ok",
    "redis": "ok",
    "background": "ok",
    "stopping": False,
}
