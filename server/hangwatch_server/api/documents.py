"""Bodies that the API reads, and those it writes which differ from `model`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from hangwatch_agent import wire
from hangwatch_server import model, patterns, texts
from hangwatch_server.api import fields
from hangwatch_server.db import sessions, tokens
from hangwatch_server.security import Scope, role_of

Name = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=100, pattern=texts.NO_NUL),
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
        default="",
        max_length=2000,
        pattern=texts.NO_NUL,
        description="Kept in the history and audit.",
    )


class NewComment(Body):
    text: Annotated[
        str,
        StringConstraints(
            strip_whitespace=True, min_length=1, max_length=2000, pattern=texts.NO_NUL
        ),
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


Pattern = Annotated[str, StringConstraints(max_length=patterns.MAX_CHARS, pattern=texts.NO_NUL)]


class TokenRequest(Body):
    name: Name = Field(examples=["node-a"])
    scopes: tuple[Scope, ...] = Field(min_length=1, max_length=5, examples=[["agent"]])
    node: Name | None = Field(
        default=None, description="The node that an agent's token speaks for."
    )
    expires_in: str | None = Field(
        default=None,
        examples=["90d"],
        description="Absent for never.",
        json_schema_extra=fields.DURATION,
    )
    jobs: Pattern = Field(
        default="",
        examples=["llm-*"],
        description="Pattern of the names of the jobs that it may see, and an agent may speak of.",
    )
    nodes: Pattern = Field(
        default="",
        examples=["gpu-*"],
        description="Pattern of the nodes that an enrolment token is for.",
    )
    uses: int | None = Field(
        default=None, ge=1, le=1_000_000, description="Nodes that an enrolment token can enrol."
    )
    may_replace: bool = Field(
        default=False, description="It may enrol a node anew, whose token then ends."
    )


class Enrolment(Body):
    node: Name = Field(examples=["gpu-17"], description="The node that the agent speaks for.")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRow:
    """A token as it may be shown: never its text, never its hash."""

    id: str
    name: str
    prefix: str
    scopes: tuple[str, ...]
    role: str  # viewer, operator or admin; the scope itself of an agent's or enrolment token
    node: str | None
    created_at: datetime
    last_used_at: datetime | None
    expires_at: datetime | None
    is_revoked: bool
    jobs: str  # pattern of the jobs that it may see or speak of, "" for all
    nodes: str  # pattern of the nodes that it may enrol
    uses_left: int | None
    may_replace: bool
    enrolled_by: str | None  # id of the enrolment token that an agent came by this one with


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken(TokenRow):
    token: str  # the text itself, shown this once


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """A browser session: who is signed in, how, and from where."""

    id: str
    kind: str  # token, oidc or proxy: who vouches for the person
    who: str
    role: str
    address: str
    created_at: datetime
    last_used_at: datetime
    expires_at: datetime


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
    return TokenRow(**asdict(token), role=role_of(token.scopes))


def new_token(token: tokens.Token, text: str) -> NewToken:
    return NewToken(**asdict(token), role=role_of(token.scopes), token=text)


def session_row(session: sessions.Session) -> SessionRow:
    return SessionRow(
        id=session.id,
        kind=session.kind.value,
        who=session.who,
        role=role_of(session.scopes),
        address=session.address,
        created_at=session.created_at,
        last_used_at=session.last_used_at,
        expires_at=session.expires_at,
    )


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
