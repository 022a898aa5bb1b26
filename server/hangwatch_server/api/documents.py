"""Bodies that the API reads, and those it writes which differ from `model`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from hangwatch_agent import wire
from hangwatch_server import model
from hangwatch_server.api import fields
from hangwatch_server.db import tokens
from hangwatch_server.security import Scope

# Postgres texts cannot hold NUL.
NO_NUL = r"^[^\x00]*$"
Name = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=100, pattern=NO_NUL),
]


class Body(BaseModel):
    """A key that we do not know is a typing error of the caller, and is refused as one."""

    model_config = ConfigDict(extra="forbid")


class CaptureRequest(Body):
    ranks: str | None = Field(
        default=None,
        max_length=10_000,
        description="Rank range; absent for all ranks.",
        examples=["0-3,7"],
        json_schema_extra=fields.RANGE,
    )
    kinds: tuple[wire.CaptureKind, ...] = Field(
        default=(wire.CaptureKind.STACKS,),
        min_length=1,
        max_length=2,
        description="`recorder` is torch's record of the newest collectives.",
    )
    native: bool = Field(default=False, description="With C and C++ frames; slower.")


class Acknowledgement(Body):
    comment: str = Field(
        default="", max_length=2000, pattern=NO_NUL, description="Kept in the history and audit."
    )


class NewComment(Body):
    text: Annotated[
        str,
        StringConstraints(strip_whitespace=True, min_length=1, max_length=2000, pattern=NO_NUL),
    ] = Field(description="Kept with the incident and in the audit.", examples=["drained node-b"])


class Snooze(Body):
    for_: str | None = Field(
        default=None, alias="for", examples=["1h"], json_schema_extra=fields.DURATION
    )
    until: datetime | None = Field(default=None, description="With time zone.")
    until_job_ends: bool = Field(default=False, description="And 30 days at the latest.")

    @model_validator(mode="after")
    def _has_one_end(self) -> Self:
        if (self.for_ is not None) + (self.until is not None) + self.until_job_ends != 1:
            raise ValueError(
                'a snooze has one end: give either {"for": "1h"}, {"until": time} or '
                '{"until_job_ends": true}'
            )
        if self.until is not None and self.until.tzinfo is None:
            raise ValueError("until needs a time zone, as in 2026-11-20T18:00:00Z")
        return self


class TokenRequest(Body):
    name: Name = Field(examples=["node-a"])
    scopes: tuple[Scope, ...] = Field(min_length=1, max_length=4, examples=[["agent"]])
    node: Name | None = Field(
        default=None, description="The node that an agent's token speaks for."
    )
    expires_in: str | None = Field(
        default=None,
        examples=["90d"],
        description="Absent for never.",
        json_schema_extra=fields.DURATION,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRow:
    """A token as it may be shown: never its text, never its hash."""

    id: str
    name: str
    prefix: str
    scopes: tuple[str, ...]
    node: str | None
    created_at: datetime
    last_used_at: datetime | None
    expires_at: datetime | None
    is_revoked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken(TokenRow):
    token: str  # the text itself, shown this once


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    name: str
    file: str
    line: int
    is_native: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StackClass:
    """Ranks whose main thread has the same stack; odd (smaller) classes come first."""

    signature: str
    ranks: str
    count: int
    activity: model.Activity
    where: str
    frames: tuple[Frame, ...]  # innermost first
    is_frozen: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What a file said round a line that a stack stands at, as an agent read it."""

    file: str
    line: int
    first: int  # number of the first of `lines`
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """The merged stacks of a capture."""

    capture: str
    roots: tuple[model.TreeNode, ...]
    classes: tuple[StackClass, ...]
    missing: tuple[model.PartRow, ...]
    before: str  # id of the capture that tells frozen from moving, "" for none or several
    sources: tuple[Source, ...]  # of the user's own lines, where an agent has read them


def token_row(token: tokens.Token) -> TokenRow:
    return TokenRow(**asdict(token))


def new_token(token: tokens.Token, text: str) -> NewToken:
    return NewToken(**asdict(token), token=text)


def tree(tree: model.Tree) -> Tree:
    classes = tuple(_stack_class(row) for row in tree.classes)
    return Tree(
        capture=tree.capture,
        roots=tree.roots,
        classes=classes,
        missing=tree.missing,
        before=tree.before,
        sources=tuple(
            Source(file=one.file, line=one.line, first=one.first, lines=one.lines)
            for one in tree.sources
        ),
    )


def _stack_class(row: model.StackClass) -> StackClass:
    frames = tuple(
        Frame(name=frame.name, file=frame.file, line=frame.line, is_native=frame.is_native)
        for frame in row.frames
    )
    return StackClass(
        signature=row.signature,
        ranks=row.ranks,
        count=row.count,
        activity=row.activity,
        where=row.where,
        frames=frames,
        is_frozen=row.is_frozen,
    )
