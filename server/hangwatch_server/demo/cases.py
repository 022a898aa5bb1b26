"""The hangs that the demo and the acceptance tests run, as `cases.toml` lists them."""

from __future__ import annotations

import tomllib
from enum import StrEnum
from pathlib import Path

import msgspec

from hangwatch_server import assets
from hangwatch_server.errors import HangwatchError
from hangwatch_server.model import Condition, Kind, State


class Evidence(StrEnum):
    """What confirms the hang, and so how soon the verdict is due."""

    HARD = "hard"
    FROZEN = "frozen"
    PATIENT = "patient"
    NONE = "none"


class Case(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One program and the verdict it must get."""

    name: str
    title: str
    program: str
    launcher: str  # "torchrun" or "python"
    nodes: int
    ranks: int
    evidence: Evidence
    state: State
    kind: Kind
    culprits: str
    args: tuple[str, ...] = ()  # of the program
    launcher_args: tuple[str, ...] = ()  # of torchrun
    condition: Condition | None = None
    where: str = ""
    seq: int | None = None
    hint: str = ""

    @property
    def path(self) -> Path:
        return assets.programs() / self.program

    @property
    def is_healthy(self) -> bool:
        return self.kind is Kind.NONE


def load() -> tuple[Case, ...]:
    """All cases, in the order of the file; the first is the demo's default."""
    table = tomllib.loads((assets.programs() / "cases.toml").read_text())
    return msgspec.convert(table["case"], tuple[Case, ...])


def find(name: str) -> Case:
    """Raise HangwatchError with the known names if there is no such case."""
    known = {case.name: case for case in load()}
    if name not in known:
        raise HangwatchError(
            f"there is no case '{name}'; hangwatch demo --list shows all: {', '.join(known)}"
        )
    return known[name]
