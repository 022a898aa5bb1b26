"""One row per case, kept as a line of JSON, so that a run can be continued and runs be merged."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from hangwatch_server import ranges
from hangwatch_server.demo.conductor import Outcome


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """What a case must get, or did get."""

    state: str = ""
    kind: str = ""
    culprits: str = ""
    condition: str = ""
    where: str = ""


class TraceAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What `torchfrtrace` made of the ranks' recorder dumps."""

    error: str = ""  # how it ended, if not with an answer
    named: str = ""  # ranks that it calls missing or culprit, over all of its reports
    reports: int = 0


class PageAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a page of torch's debug server showed."""

    status: int = 0
    error: str = ""
    answered: int = 0  # ranks of which it has something to show
    shows_culprits: bool = False  # a stack of each culprit is among them


class Peers(msgspec.Struct, frozen=True, kw_only=True):
    """What torch's own tools said of the same job at the moment of the verdict."""

    shipped: TraceAnswer = TraceAnswer()
    repaired: TraceAnswer = TraceAnswer()
    stacks: PageAnswer = PageAnswer()
    trace_page: PageAnswer = PageAnswer()


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """What one case came to. Seconds are since the last progress that any rank printed."""

    name: str
    title: str
    family: str
    depth: str
    evidence: str
    is_healthy: bool
    expected: Words
    given: Words
    confidence: float | None = None  # None: no verdict that names a kind
    named_s: float | None = None
    hung_s: float | None = None
    states: tuple[str, ...] = ()
    incidents: int = 0
    differences: tuple[str, ...] = ()
    peers: Peers | None = None

    @property
    def is_right(self) -> bool:
        return not self.differences

    @property
    def is_false_alarm(self) -> bool:
        return self.is_healthy and ("hung" in self.states or self.incidents > 0)


def of_outcome(outcome: Outcome, peers: Peers | None) -> Row:
    case = outcome.case
    verdict = outcome.verdict
    return Row(
        name=case.name,
        title=case.title,
        family=case.family,
        depth=case.depth,
        evidence=case.evidence,
        is_healthy=case.is_healthy,
        expected=Words(
            state=case.state,
            kind=case.kind,
            culprits=case.culprits,
            condition=case.condition or "",
            where=case.where,
        ),
        given=_given(outcome),
        confidence=verdict["confidence"] if verdict and verdict["kind"] != "none" else None,
        named_s=None if case.is_healthy else outcome.named_s,
        hung_s=outcome.hung_s,
        states=tuple(outcome.states),
        incidents=outcome.incidents,
        differences=tuple(outcome.differences),
        peers=peers,
    )


def _given(outcome: Outcome) -> Words:
    verdict = outcome.verdict
    if verdict is None:
        return Words()
    culprits = verdict["culprits"]
    return Words(
        state=verdict["state"],
        kind=verdict["kind"],
        culprits=verdict["culprit_ranks"],
        condition=", ".join(dict.fromkeys(one["condition"] for one in culprits)),
        where=next((one["where"] for one in culprits if one["where"]), ""),
    )


def ranks_of(text: str) -> frozenset[int]:
    return frozenset(ranges.parse(text))


def read(path: Path) -> dict[str, Row]:
    """The rows of a file by name, the last of each; none where there is no file."""
    if not path.exists():
        return {}
    lines = path.read_bytes().splitlines()
    rows = (msgspec.json.decode(line, type=Row) for line in lines if line.strip())
    return {row.name: row for row in rows}


def append(path: Path, rows: Iterable[Row]) -> None:
    with path.open("ab") as file:
        for row in rows:
            file.write(msgspec.json.encode(row) + b"\n")
