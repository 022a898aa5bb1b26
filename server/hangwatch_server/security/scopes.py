"""The scopes of tokens, what each implies, and the roles that people know them by. Data only."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Scope(StrEnum):
    AGENT = "agent"  # stream heartbeats and captures of one node
    ENROL = "enrol"  # exchange itself for agents' tokens, and nothing else
    READ = "read"
    OPERATE = "operate"  # take captures, acknowledge, snooze
    ADMIN = "admin"  # tokens, audit, deletion


class Role(StrEnum):
    """What people call the scopes that are for people."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


SCOPE_OF = {Role.VIEWER: Scope.READ, Role.OPERATOR: Scope.OPERATE, Role.ADMIN: Scope.ADMIN}
_NAMES = frozenset(scope.value for scope in Scope)
_IMPLIED: dict[Scope, frozenset[Scope]] = {
    Scope.AGENT: frozenset({Scope.AGENT}),
    Scope.ENROL: frozenset({Scope.ENROL}),
    Scope.READ: frozenset({Scope.READ}),
    Scope.OPERATE: frozenset({Scope.OPERATE, Scope.READ}),
    Scope.ADMIN: frozenset(Scope),
}


def granted(scopes: Iterable[str]) -> frozenset[Scope]:
    """All that these scopes allow; text that names no scope allows nothing."""
    known = [Scope(text) for text in scopes if text in _NAMES]
    return frozenset().union(*(_IMPLIED[scope] for scope in known))


def role_of(scopes: Iterable[str]) -> str:
    """The highest role that these scopes make; for a machine's token its own scope."""
    given = list(scopes)
    allowed = granted(given)
    for role in reversed(Role):
        if SCOPE_OF[role] in allowed:
            return role.value
    return ", ".join(given)
