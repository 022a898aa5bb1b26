"""Flags made from the fields of a settings dataclass, so that no setting can lack its flag."""

from __future__ import annotations

import argparse
import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    # argparse's class takes a parameter for type checkers only.
    Commands: TypeAlias = argparse._SubParsersAction[argparse.ArgumentParser]
else:
    Commands = argparse._SubParsersAction


def add(
    parser: argparse.ArgumentParser, schema: type[Any], only: frozenset[str] | None = None
) -> None:
    """One flag per field of `schema`, a settings dataclass; `only` keeps some of them."""
    group = parser.add_argument_group(
        "settings", "also as HANGWATCH_<NAME> in the environment, or a key of the --config file"
    )
    for item in dataclasses.fields(schema):
        if only is None or item.name in only:
            _add_flag(group, item)


def _add_flag(group: argparse._ArgumentGroup, item: dataclasses.Field[Any]) -> None:
    name = "--" + item.name.replace("_", "-")
    help_text = _help(item).replace("%", "%%")
    if item.type in (bool, "bool"):
        group.add_argument(
            name, action=argparse.BooleanOptionalAction, default=None, help=help_text
        )
    else:
        group.add_argument(name, metavar=_metavar(item), help=help_text)


def _help(item: dataclasses.Field[Any]) -> str:
    text = str(item.metadata.get("help", ""))
    if item.default in (dataclasses.MISSING, None, "") or item.metadata.get("secret"):
        return text
    return f"{text} (default: {item.default})"


def _metavar(item: dataclasses.Field[Any]) -> str:
    kind = str(getattr(item.type, "__name__", item.type))
    for part, shown in (("Path", "PATH"), ("int", "N"), ("float", "N")):
        if part in kind:
            return shown
    return "TEXT"


def values(arguments: argparse.Namespace, schema: type[Any]) -> dict[str, str | None]:
    """The flags that were given, as text, for the settings loader."""
    given: dict[str, str | None] = {}
    for item in dataclasses.fields(schema):
        value = getattr(arguments, item.name, None)
        given[item.name] = _text(value)
    return given


def _text(value: object) -> str | None:
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def config_file(
    arguments: argparse.Namespace, environ: Mapping[str, str] = os.environ
) -> Path | None:
    """The TOML file to read: --config, else HANGWATCH_CONFIG, else none."""
    given = getattr(arguments, "config", None) or environ.get("HANGWATCH_CONFIG")
    return Path(given) if given else None
