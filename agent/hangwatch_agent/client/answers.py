"""What the server answers, typed. Fields that a newer server adds are in `raw` only."""

from __future__ import annotations

from datetime import datetime

import msgspec

FINE, HUNG, UNKNOWN = 0, 1, 2
# The table of states and exit codes that schedulers rely on (docs, "check").
EXIT_CODES = {
    "starting": FINE,
    "healthy": FINE,
    "finished": FINE,
    "expected_wait": FINE,
    "slow": FINE,
    "suspected": FINE,
    "hung": HUNG,
    "failed": HUNG,
    "unknown": UNKNOWN,
}


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """An answer; `raw` is its JSON exactly as it came, where it was an answer of its own."""

    raw: bytes = msgspec.field(default=b"", name=" raw")  # no key of an answer has a blank


class Culprit(msgspec.Struct, frozen=True, kw_only=True):
    rank: int
    node: str
    pid: int | None
    condition: str
    where: str
    detail: str = ""


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    reporting: int
    world_size: int
    silent: str


class PathStep(msgspec.Struct, frozen=True, kw_only=True):
    rank: int
    waits_in: str
    for_: tuple[int, ...] = msgspec.field(name="for")


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """What a scheduler may do: `exclude_nodes` only where the evidence points at the node."""

    advice: str
    exclude_nodes: tuple[str, ...]
    evidence_stored: bool


class Verdict(Document, frozen=True, kw_only=True):
    job: str
    name: str
    attempt: int
    index: int
    state: str
    kind: str
    confidence: float
    since: datetime
    stalled_s: float
    summary: str
    culprits: tuple[Culprit, ...]
    culprit_ranks: str
    waiting: str
    path: tuple[PathStep, ...]
    hints: tuple[str, ...]
    coverage: Coverage
    action: Action
    incident: str | None

    @property
    def exit_code(self) -> int:
        """0 fine, 1 hung or failed, 2 unknown; a state of a newer server is unknown."""
        return EXIT_CODES.get(self.state, UNKNOWN)


class Job(Document, frozen=True, kw_only=True):
    id: str
    name: str
    attempt: int
    world_size: int
    reporting: int
    state: str
    verdict: Verdict
    nodes: tuple[str, ...]
    is_live: bool
    progress_age_s: float | None = None


class Jobs(Document, frozen=True, kw_only=True):
    items: tuple[Job, ...]
    next: str | None = None


class Hold(Document, frozen=True, kw_only=True):
    """Whether the evidence of a hang is stored; `state` is the job's."""

    evidence_stored: bool
    state: str
    incident: str | None


class Incident(Document, frozen=True, kw_only=True):
    id: str
    job: str
    job_name: str
    attempt: int
    state: str
    kind: str
    summary: str
    culprit_ranks: str
    culprit_nodes: tuple[str, ...]
    opened_at: datetime
    confirmed_at: datetime | None
    ended_at: datetime | None
    end_reason: str
    acknowledged_by: str
    acknowledged_at: datetime | None
    snoozed_until: datetime | None
    captures: tuple[str, ...]
    verdict: Verdict


class Incidents(Document, frozen=True, kw_only=True):
    items: tuple[Incident, ...]
    next: str | None = None


class Part(msgspec.Struct, frozen=True, kw_only=True):
    rank: int
    node: str
    has_stacks: bool
    reason: str
    remedy: str


class Capture(Document, frozen=True, kw_only=True):
    id: str
    state: str
    ranks: str
    parts: tuple[Part, ...]


class Token(Document, frozen=True, kw_only=True):
    id: str
    name: str
    prefix: str
    scopes: tuple[str, ...]
    node: str | None
    created_at: str
    last_used_at: str | None
    expires_at: str | None
    is_revoked: bool
    role: str = ""
    jobs: str = ""
    nodes: str = ""
    uses_left: int | None = None


class TokenRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A token to be made; what is left out has the server's default."""

    name: str
    scopes: tuple[str, ...]
    node: str | None = None
    expires_in: str | None = None
    jobs: str = ""
    nodes: str = ""
    uses: int | None = None
    may_replace: bool = False


class Tokens(Document, frozen=True, kw_only=True):
    items: tuple[Token, ...]


class NewToken(Token, frozen=True, kw_only=True):
    token: str  # the text itself, shown this once


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """An error document, RFC 9457."""

    title: str = ""
    detail: str = ""
