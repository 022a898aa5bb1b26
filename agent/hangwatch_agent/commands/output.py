"""How the command line shows data: aligned tables, verdicts in words, or the server's own JSON."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterator, Sequence

import msgspec

from hangwatch_agent import client


def json(raw: bytes) -> None:
    """Print JSON as the server sent it, indented."""
    print(msgspec.json.format(raw, indent=2).decode())


def text(lines: str) -> None:
    """Print what people read. Jobs chose parts of it, and must not steer the terminal."""
    print(_plain(lines))


def _plain(lines: str) -> str:
    kept = (
        char
        for char in lines
        if char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cf", "Cs")
    )
    return "".join(kept)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under headings; the last column is as long as it is."""
    widths = [
        max(len(row[index]) for row in (headings, *rows)) for index in range(len(headings) - 1)
    ]
    for row in (headings, *rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        text("  ".join([*cells, row[-1]]).rstrip())


def note(lines: str) -> None:
    """Something a person should know that is no data: to stderr."""
    print(_plain(lines), file=sys.stderr)


def verdict(found: client.Verdict) -> Iterator[str]:
    """A verdict in lines."""
    yield f"{found.name} (job {found.job}, attempt {found.attempt}): {found.state}"
    if found.kind != "none":
        yield f"  kind        {found.kind}, confidence {found.confidence:.0%}"
    if found.summary:
        yield f"  summary     {found.summary}"
    for culprit in found.culprits:
        place = f"rank {culprit.rank} on {culprit.node or 'an unknown node'}"
        pid = f", pid {culprit.pid}" if culprit.pid is not None else ""
        where = f": {culprit.where}" if culprit.where else ""
        detail = f" ({culprit.detail})" if culprit.detail else ""
        yield f"  culprit     {place}{pid}, {culprit.condition}{where}{detail}"
    if found.waiting:
        yield f"  waiting     ranks {found.waiting}, {found.stalled_s:.0f} s"
    for hint in found.hints:
        yield f"  hint        {hint}"
    seen = found.coverage
    silent = f", silent: {seen.silent}" if seen.silent else ""
    yield f"  coverage    {seen.reporting} of {seen.world_size} ranks reporting{silent}"
    if found.incident:
        yield f"  incident    {found.incident}"


def job_row(job: client.Job) -> tuple[str, ...]:
    ranks = f"{job.reporting}/{job.world_size}"
    return (job.name, job.id, job.state, ranks, str(job.attempt), job.verdict.summary)
