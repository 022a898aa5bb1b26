"""The four scopes and what each implies. Data only; tokens and requests are elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class Scope(StrEnum):
    AGENT = "agent"  # stream heartbeats and captures of one node
    READ = "read"
    OPERATE = "operate"  # take captures, acknowledge, snooze
    ADMIN = "admin"  # tokens, audit, deletion


_NAMES = frozenset(scope.value for scope in Scope)
_IMPLIED: dict[Scope, frozenset[Scope]] = {
    Scope.AGENT: frozenset({Scope.AGENT}),
    Scope.READ: frozenset({Scope.READ}),
    Scope.OPERATE: frozenset({Scope.OPERATE, Scope.READ}),
    Scope.ADMIN: frozenset(Scope),
}


def granted(scopes: Iterable[str]) -> frozenset[Scope]:
    """All that these scopes allow; text that names no scope allows nothing."""
    known = [Scope(text) for text in scopes if text in _NAMES]
    return frozenset().union(*(_IMPLIED[scope] for scope in known))
