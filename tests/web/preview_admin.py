"""What the preview's administration shows: hand-made tokens and audit rows, without a database.

What the pages do is tested on a real server in tests/integration/pages; here is how they look.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from tests.web import making, scenes

from hangwatch_server.db import audit, tokens

ADMIN_HASH = "preview-admin"
TEXT = "hw_5d41402a_" + "x" * 43


def install(patch: Callable[[object, str, object], None]) -> None:
    """Let the pages' questions about tokens and the audit trail be answered from here."""
    patch(tokens, "list_all", _list_tokens)
    patch(tokens, "find", _find_token)
    patch(audit, "list_page", _list_audit)


def token(identifier: str, name: str, scope: str, **changes: object) -> tokens.Token:
    values: dict[str, object] = {
        "id": identifier,
        "name": name,
        "prefix": "5d41402a",
        "scopes": (scope,),
        "node": None,
        "created_at": making.NOW - timedelta(days=12),
        "last_used_at": making.NOW - timedelta(minutes=3),
        "expires_at": None,
        "is_revoked": False,
    }
    return tokens.Token(**{**values, **changes})  # type: ignore[arg-type]


async def _list_tokens(scene: scenes.Scene) -> list[tokens.Token]:
    return [
        token("t1", "ada", "admin"),
        token("t2", "node-b", "agent", node="node-b"),
        token("t3", scenes.HOSTILE[:100], "read", expires_at=making.NOW + timedelta(days=80)),
        token("t4", "left the team", "operate", is_revoked=True, last_used_at=None),
    ]


async def _find_token(scene: scenes.Scene, token_id: str) -> tokens.Token | None:
    return next((row for row in await _list_tokens(scene) if row.id == token_id), None)


async def _list_audit(
    scene: scenes.Scene, *, limit: int = 50, before: str | None = None
) -> tuple[list[audit.AuditRow], str | None]:
    rows = [
        audit.AuditRow(
            at=making.NOW - timedelta(minutes=number),
            who=who,
            action=action,
            subject=subject,
            detail=detail,
        )
        for number, (who, action, subject, detail) in enumerate(
            (
                ("ada", "acknowledge", "incident:inc-hung", "looking at the mount"),
                ("ada", "capture", "job:a1b2c3d4e5f6", "cap-hung"),
                ("admin", "token.create", "token:t2", "node-b: agent"),
                (scenes.HOSTILE[:100], "acknowledge", "incident:inc-hostile", scenes.HOSTILE),
            )
        )
    ]
    return ([], None) if before else (rows, "1")


class SceneTokens:
    """Knows two sessions, an operator's and an administrator's, and makes one new token."""

    def __init__(self, operator_hash: str) -> None:
        self._callers = {
            operator_hash: token("t0", "ada", "operate"),
            ADMIN_HASH: token("t1", "ada", "admin"),
        }

    async def check_hash(self, secret_hash: str) -> tokens.Token | None:
        return self._callers.get(secret_hash)

    async def create(self, name: str, scopes: tuple[str, ...], **_: object) -> object:
        return token("t9", name, scopes[0], last_used_at=None), TEXT
