"""Sessions and enrolment."""

from __future__ import annotations

from hangwatch_server.api.examples.administration import NEW_TOKEN
from hangwatch_server.api.examples.responses import Json

ENROLLED: Json = {**NEW_TOKEN, "name": "gpu-17", "node": "gpu-17", "enrolled_by": "t_0c2e"}
SESSION: Json = {
    "id": "5c1d0f2a9b7e",
    "kind": "oidc",
    "who": "oidc:ada@example.org",
    "role": "operator",
    "address": "192.0.2.7",
    "created_at": "2026-11-20T08:00:00Z",
    "last_used_at": "2026-11-20T18:00:00Z",
    "expires_at": "2026-11-20T20:00:00Z",
}
