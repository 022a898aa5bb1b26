"""What the preview's administration shows: hand-made tokens and audit rows, without a database.

What the pages do is tested on a real server in tests/integration/pages; here is how they look.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import timedelta

from tests.web import making, scenes

from hangwatch_server import security
from hangwatch_server.db import audit, sessions, tokens

ADMIN_HASH = "preview-admin"
TEXT = "hw_5d41402a_" + "x" * 43


def install(patch: Callable[[object, str, object], None]) -> None:
    """Let the pages' questions about tokens and the audit trail be answered from here."""
    patch(tokens, "list_all", _list_tokens)
    patch(tokens, "find", _find_token)
    patch(audit, "list_page", _list_audit)
    patch(sessions, "list_page", _list_sessions)


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
        token("t5", "cluster", "enrol", nodes="gpu-*", uses_left=62),
        token("t6", "llm team's scheduler", "operate", jobs="llm-*"),
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

    async def by_id(self, token_id: str) -> tokens.Token | None:
        return self._callers.get(token_id)

    async def create(self, wanted: security.TokenRequest) -> object:
        made = token("t9", wanted.name, wanted.scopes[0], last_used_at=None)
        limits = {"node": wanted.node, "nodes": wanted.nodes, "jobs": wanted.jobs}
        return dataclasses.replace(made, **limits), TEXT


class SceneSessions:
    """Of each cookie the token that it stands for, until `over`."""

    def __init__(self) -> None:
        self._tokens: dict[str, str] = {}

    def issue(self, token_id: str) -> str:
        cookie = f"cookie-of-{token_id}"
        self._tokens[cookie] = token_id
        return cookie

    def over(self) -> None:
        self._tokens.clear()

    async def find(self, cookie: str) -> sessions.Session | None:
        token_id = self._tokens.get(cookie)
        return None if token_id is None else session("s0", "ada", token=token_id)


def session(identifier: str, who: str, **changes: object) -> sessions.Session:
    values: dict[str, object] = {
        "id": identifier,
        "kind": sessions.SessionKind.TOKEN,
        "who": who,
        "scopes": ("admin",),
        "token": None,
        "address": "192.0.2.7",
        "created_at": making.NOW - timedelta(hours=3),
        "last_used_at": making.NOW - timedelta(minutes=2),
        "expires_at": making.NOW + timedelta(hours=9),
        "is_over": False,
    }
    return sessions.Session(**{**values, **changes})  # type: ignore[arg-type]


async def _list_sessions(
    scene: scenes.Scene, *, limit: int = 100, before: str | None = None
) -> tuple[list[sessions.Session], str | None]:
    rows = [
        session("s0", "ada"),
        session(
            "s1",
            "oidc:grace@example.org",
            kind=sessions.SessionKind.OIDC,
            scopes=("operate",),
            address="2001:db8:85a3:8d3:1319:8a2e:370:7348",
        ),
        session("s2", scenes.HOSTILE, kind=sessions.SessionKind.PROXY, scopes=("read",)),
    ]
    return ([] if before else rows), None
