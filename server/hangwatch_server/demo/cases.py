"""The cases that the demo, the acceptance tests and the scorecard run, as the families list them.

`tests/programs` has one folder per family, each with its programs and a `cases.toml`; the README
beside them explains the keys. Not for programs that other tests run: those have no verdict to get.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Literal

import msgspec

from hangwatch_agent.wire import Depth
from hangwatch_server import assets
from hangwatch_server.errors import HangwatchError
from hangwatch_server.model import Condition, Kind, State

# In the order in which people read of them. The first case of all is the demo's default.
FAMILIES: Mapping[str, str] = {
    "missing": "some ranks never call what the others wait in",
    "uneven": "ranks have unequal numbers of inputs",
    "mismatch": "ranks call different things at the same place of the same group",
    "order": "ranks wait for each other in a cycle, or for a message that nobody sends",
    "groups": "several groups wait because of one rank, or several jobs share a node",
    "startup": "the job hangs before its first step",
    "process": "something befell the process of a rank",
    "lifecycle": "ranks are restarted, hang twice, or hang on their way out",
    "bare": "the job was started without Hangwatch",
    "healthy": "nothing is wrong, although it may look so",
}


class Evidence(StrEnum):
    """What confirms the hang, and so how soon the verdict is due."""

    HARD = "hard"
    FROZEN = "frozen"
    PATIENT = "patient"
    NONE = "none"


class Case(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One program and the verdict it must get."""

    name: str  # also the name of its job
    family: str
    title: str
    program: str
    launcher: Literal["torchrun", "python"]
    nodes: int
    ranks: int
    evidence: Evidence
    state: State
    kind: Kind
    culprits: str
    args: tuple[str, ...] = ()  # of the program
    launcher_args: tuple[str, ...] = ()  # of torchrun
    run_args: tuple[str, ...] = ()  # of `hangwatch run`
    env: Mapping[str, str] = {}
    depth: Depth = Depth.PROBE
    condition: Condition | None = None
    where: str = ""
    seq: int | None = None
    hint: str = ""
    says: tuple[str, ...] = ()
    incidents: int | None = None
    is_scorecard_only: bool = False

    @property
    def path(self) -> Path:
        return assets.programs() / self.family / self.program

    @property
    def is_healthy(self) -> bool:
        """Nothing may be reported, neither now nor before: a hang that ended has an incident."""
        return self.kind is Kind.NONE and not self.expected_incidents

    @property
    def expected_incidents(self) -> int:
        """How many incidents people must be shown: one per confirmed hang unless the case says."""
        if self.incidents is not None:
            return self.incidents
        return int(self.state is State.HUNG)


def load() -> tuple[Case, ...]:
    """All cases, family by family, in the order of their files."""
    return tuple(case for family in FAMILIES for case in _of_family(family))


def tested() -> tuple[Case, ...]:
    """The cases that every run of the tests plays; the scorecard plays all of them."""
    return tuple(case for case in load() if not case.is_scorecard_only)


def find(name: str) -> Case:
    """Raise HangwatchError with the known names if there is no such case."""
    known = {case.name: case for case in load()}
    if name not in known:
        raise HangwatchError(
            f"there is no case '{name}'; hangwatch demo --list shows all: {', '.join(known)}"
        )
    return known[name]


def _of_family(family: str) -> Iterator[Case]:
    path = assets.programs() / family / "cases.toml"
    for row in tomllib.loads(path.read_text())["case"]:
        yield msgspec.convert({**row, "family": family}, Case)
