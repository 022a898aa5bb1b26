"""The settings that a server runs with, each with its meaning and where its value came from.

Standard library only, as the settings themselves.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from hangwatch_server.settings.server import ServerSettings

HIDDEN = "********"
_DEFAULT = "default"


@dataclass(frozen=True, kw_only=True)
class SettingRow:
    """One setting as it may be shown: a secret's value never is."""

    key: str
    value: str
    source: str  # "default", "flag --port", "environment HANGWATCH_PORT", "port in FILE"
    is_default: bool
    help: str
    why: str  # it has its default


def rows(settings: ServerSettings, origins: Mapping[str, str]) -> tuple[SettingRow, ...]:
    """Every setting, those that were set first; `origins` names the source of each of them."""
    found = [_row(settings, item, origins) for item in dataclasses.fields(settings)]
    return tuple(sorted(found, key=lambda row: row.is_default))


def _row(
    settings: ServerSettings, item: dataclasses.Field[object], origins: Mapping[str, str]
) -> SettingRow:
    value = getattr(settings, item.name)
    shown = "" if value is None else str(value)
    return SettingRow(
        key=item.name,
        value=HIDDEN if shown and item.metadata["secret"] else shown,
        source=origins.get(item.name, _DEFAULT),
        is_default=item.name not in origins,
        help=item.metadata["help"],
        why=item.metadata["why"],
    )
