"""Which role a person's groups give."""

from __future__ import annotations

import pytest

from hangwatch_server.security import roles
from hangwatch_server.security.scopes import Role, Scope, granted, role_of

RULES = roles.parse("admin=sre, platform; operator=oncall;viewer=*")


@pytest.mark.parametrize(
    ("groups", "role"),
    [
        (["sre"], Role.ADMIN),
        (["oncall", "platform"], Role.ADMIN),
        (["oncall"], Role.OPERATOR),
        (["anything"], Role.VIEWER),
        ([], Role.VIEWER),
    ],
)
def test_the_highest_role_of_all_groups_wins(groups: list[str], role: Role) -> None:
    assert RULES.role(groups) is role


def test_without_a_rule_for_everybody_a_stranger_has_no_role() -> None:
    assert roles.parse("admin=sre").role(["oncall"]) is None
    assert roles.parse("").role(["sre"]) is None


@pytest.mark.parametrize("text", ["root=sre", "admin", "admin=", "admin=,", "=sre"])
def test_a_rule_that_gives_no_role_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(roles.RolesError, match="operator=oncall"):
        roles.parse(text)


def test_roles_are_named_by_their_highest_scope() -> None:
    assert role_of(["read"]) == "viewer"
    assert role_of(["agent", "operate"]) == "operator"
    assert role_of(["admin"]) == "admin"
    assert role_of(["agent"]) == "agent"


def test_an_enrolment_token_may_do_nothing_else() -> None:
    assert granted(["enrol"]) == {Scope.ENROL}
