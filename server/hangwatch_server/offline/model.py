"""What goes into an offline diagnosis and what comes out. Plain data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hangwatch_agent import wire
from hangwatch_agent.dumps.reading import Dump
from hangwatch_agent.ras.status import Status
from hangwatch_server.model import Tree, Verdict


class FileKind(StrEnum):
    """What a file is, by what is in it and never by its name."""

    RECORDER = "flight recorder"
    RAS = "NCCL RAS"
    STACKS = "py-spy stacks"
    NONE = "not read"


class Outcome(StrEnum):
    HANG = "hang"
    NOTHING = "nothing"  # no rank holds up another in these files
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file as it was given; `name` may hold folders and whatever else a person likes."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One file read: at most one of `dump`, `ras` and `stacks`, or else why there is none."""

    name: str
    size_bytes: int
    kind: FileKind = FileKind.NONE
    rank: int | None = None
    dump: Dump | None = None
    ras: Status | None = None
    stacks: tuple[wire.ProcessStacks, ...] = ()
    problem: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRow:
    """One file as the report lists it."""

    name: str
    size_bytes: int
    kind: FileKind
    rank: int | None
    is_used: bool
    note: str  # why it is not used, or what to know of it
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReport:
    """The diagnosis of the files of one job."""

    name: str
    outcome: Outcome
    verdict: Verdict
    dumps: str  # ranks with a recorder dump, range text
    stacks: str  # ranks with stacks
    tree: Tree | None
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All that was found in the files that were given."""

    jobs: tuple[JobReport, ...]
    files: tuple[FileRow, ...]
