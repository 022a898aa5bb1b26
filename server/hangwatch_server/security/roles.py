"""Which role a person has whom an identity provider or a proxy has signed in, by their groups.

The setting reads `admin=sre,platform; operator=oncall; viewer=*`: a role, the groups that have
it, and `*` for everybody who is signed in. The highest role wins; who has none gets in nowhere.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from hangwatch_server.errors import HangwatchError
from hangwatch_server.security.scopes import Role

EVERYBODY = "*"
MAX_GROUPS = 1000


class RolesError(HangwatchError):
    """The setting cannot be read."""


@dataclass(frozen=True, slots=True)
class RoleRules:
    """For each role the groups that have it."""

    groups: dict[Role, frozenset[str]]

    def role(self, groups: Collection[str]) -> Role | None:
        """The highest role of somebody who is in these groups."""
        has = {*groups, EVERYBODY}
        return next((role for role in reversed(Role) if has & self.groups[role]), None)


def parse(text: str) -> RoleRules:
    """Read the setting; raise RolesError with an example for what is not one."""
    found: dict[Role, frozenset[str]] = {role: frozenset() for role in Role}
    for rule in filter(None, (part.strip() for part in text.split(";"))):
        name, _, groups = rule.partition("=")
        names = frozenset(filter(None, (group.strip() for group in groups.split(","))))
        if name.strip() not in set(Role) or not names:
            raise RolesError(
                f"'{rule[:60]}' in --roles gives no role to a group: write it as "
                "'admin=sre,platform; operator=oncall; viewer=*'"
            )
        found[Role(name.strip())] |= names
    return RoleRules(found)
