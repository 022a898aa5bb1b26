"""What each scope allows."""

from __future__ import annotations

from hangwatch_server.security import Scope, granted


def test_admin_may_do_everything() -> None:
    assert granted(["admin"]) == frozenset(Scope)


def test_operate_may_read_but_not_administer() -> None:
    assert granted(["operate"]) == {Scope.OPERATE, Scope.READ}


def test_an_agent_may_not_read() -> None:
    assert granted(["agent"]) == {Scope.AGENT}


def test_an_unknown_scope_allows_nothing() -> None:
    assert granted(["root", ""]) == frozenset()
