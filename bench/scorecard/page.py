"""Writes rows as Markdown: the totals first, then a table per family, then torch's own tools."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from importlib import metadata

from bench.scorecard import totals
from bench.scorecard.rows import Row, TraceAnswer

from hangwatch_server.demo.cases import FAMILIES

INTRO = """# Scorecard

What Hangwatch said of every program in [tests/programs](../tests/programs/README.md), played for
real, and what torch's own tools said of the same jobs at the same moment. `make scorecard` writes
this page.
"""
READING = """*Named* is the time from the last progress that any rank printed to the first suspicion
or hang with the right kind and culprits, *hung* to the confirmed verdict, both in seconds with
default limits. A case is right only if state, kind, culprits, condition, place and number of
incidents are all as its `cases.toml` says. A case that never printed progress has no times."""
PEERS = """## Beside it: torch's own tools

Asked when Hangwatch's verdict was in, while the job still hung. Neither watches a job or tells
anybody; each answers when it is asked.

* **torchfrtrace, as shipped**: on the recorder dumps of all ranks that answered. gloo's dumps have
  no group names in torch 2.13, on which it raises.
* **torchfrtrace, repaired**: the same with the dumps' group table put right by hand, and told that
  ranks may be missing. *Named* are the ranks that it calls missing or culprit in any report.
* **debug server**: the pages of `torch.distributed.debug`. `/stacks` has no verdict: the column
  says how many ranks it shows, and whether the culprit's stack is among them for a reader to find.
  `/fr_trace` runs the same analysis as torchfrtrace.

A bare job has no worker server that could be asked, and neither has a rank that is gone or stopped.
"""
GENERATED = """
## Generated jobs

Jobs of many sizes and meshes that exist as telemetry only, each with one known fault, two, or none;
`diagnose` alone is asked. *Right* is the right kind with exactly the culprits as the first answer,
*harmful* an answer that names somebody innocent. `python bench/generated.py` shows the same.
"""
NONE = "-"


def lines(rows: Sequence[Row], missing: Sequence[str] = ()) -> Iterator[str]:
    """The whole page; `missing` are cases without a row."""
    yield INTRO
    versions = f"Python {platform.python_version()}, torch {metadata.version('torch')}"
    yield f"Played on {os.cpu_count()} cores with {versions}, gloo on CPU."
    if missing:
        yield f"\n**Not played:** {', '.join(f'`{name}`' for name in missing)}."
    yield "\n## Totals\n"
    yield from _totals(rows)
    yield "\n### Confidence\n"
    yield from _reliability(rows)
    yield f"\n## Cases\n\n{READING}"
    for family, meaning in FAMILIES.items():
        of_family = [row for row in rows if row.family == family]
        if of_family:
            yield f"\n### {family}: {meaning}\n"
            yield from _table(HEADS, map(_cells, of_family))
            yield from _wrong(of_family)
    asked = [row for row in rows if row.peers is not None]
    if asked:
        yield f"\n{PEERS}"
        yield from _peer_totals(rows, asked)
        yield ""
        yield from _table(PEER_HEADS, map(_peer_cells, asked))


def generated(table: Iterable[str]) -> Iterator[str]:
    """The section of the generated jobs, whose tables are plain text."""
    yield GENERATED
    for line in table:
        yield f"    {line}".rstrip()


HEADS = ("case", "kind", "culprits", "condition", "place", "named", "hung", "confidence", "right")
PEER_HEADS = ("case", "culprits", "torchfrtrace", "repaired: named", "/stacks", "/fr_trace")


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield "|" + "---|" * len(heads)
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', '/') for cell in row)} |"


def _cells(row: Row) -> tuple[str, ...]:
    given = row.given
    return (
        f"`{row.name}`",
        given.kind if given.kind != "none" else given.state,
        given.culprits or NONE,
        given.condition.replace("_", " "),
        given.where,
        seconds(row.named_s),
        seconds(row.hung_s),
        "" if row.confidence is None else f"{row.confidence:.0%}",
        "yes" if row.is_right else "**no**",
    )


def _wrong(rows: Iterable[Row]) -> Iterator[str]:
    wrong = [row for row in rows if not row.is_right]
    if wrong:
        yield "\nNot right:\n"
    for row in wrong:
        yield f"* `{row.name}`: {'; '.join(row.differences)[:400]}"


def _totals(rows: Sequence[Row]) -> Iterator[str]:
    faulty = [row for row in rows if not row.is_healthy]
    healthy = [row for row in rows if row.is_healthy]
    names = totals.of_verdicts(rows)
    hung = {
        evidence: totals.p90(row.hung_s for row in faulty if row.evidence == evidence)
        for evidence in ("frozen", "hard")
    }
    yield from _table(
        ("what", "measured"),
        (
            ("faulty programs right in everything", _of(faulty)),
            ("healthy programs left in peace", _of(healthy)),
            ("false alarms", str(sum(row.is_false_alarm for row in rows))),
            ("precision of the ranks named", percent(names.precision)),
            ("recall of the culprits", percent(names.recall)),
            ("named, 90th percentile", f"{seconds(totals.p90(r.named_s for r in faulty))} s"),
            ("hung when frozen, 90th percentile", f"{seconds(hung['frozen'])} s"),
            ("hung on hard evidence, 90th percentile", f"{seconds(hung['hard'])} s"),
        ),
    )


def _of(rows: Sequence[Row]) -> str:
    return f"{sum(row.is_right for row in rows)} of {len(rows)}"


def _reliability(rows: Sequence[Row]) -> Iterator[str]:
    bins = totals.reliability(rows)
    if not bins:
        yield "No verdict."
        return
    yield from _table(
        ("confidence", "verdicts", "mean", "right"),
        (
            (f"{b.low:.0%} to {b.high:.0%}", str(b.size), f"{b.mean:.0%}", f"{b.right:.0%}")
            for b in bins
        ),
    )
    yield f"\nExpected calibration error: {percent(totals.calibration_error(bins))}."


def _peer_totals(rows: Sequence[Row], asked: Sequence[Row]) -> Iterator[str]:
    shipped = [(row.peers.shipped, row) for row in asked if row.peers]
    repaired = [(row.peers.repaired, row) for row in asked if row.peers]
    ours = totals.of_verdicts(asked)
    exact = sum(row.given.culprits == row.expected.culprits for row in asked)
    yield from _table(
        ("of the same jobs", "named exactly the culprits", "precision", "recall"),
        (
            (
                "Hangwatch",
                f"{exact} of {len(asked)}",
                percent(ours.precision),
                percent(ours.recall),
            ),
            _trace_totals("torchfrtrace, as shipped", shipped),
            _trace_totals("torchfrtrace, repaired", repaired),
        ),
    )
    shown = sum(row.peers.stacks.shows_culprits for row in asked if row.peers)
    failed = sum(row.peers.trace_page.status != 200 for row in asked if row.peers)
    yield (
        f"\nThe debug server's `/stacks` has the culprits' stacks, among all others and unmarked, "
        f"in {shown} of {len(asked)} cases; its `/fr_trace` fails in {failed} of {len(asked)}."
    )


def _trace_totals(name: str, answers: Sequence[tuple[TraceAnswer, Row]]) -> tuple[str, ...]:
    found = totals.of_traces(answers)
    right = sum(totals.is_trace_right(answer, row) for answer, row in answers)
    return name, f"{right} of {len(answers)}", percent(found.precision), percent(found.recall)


def _peer_cells(row: Row) -> tuple[str, ...]:
    assert row.peers is not None  # the caller has looked
    peers = row.peers
    whose = ", the culprit's too" if peers.stacks.shows_culprits else ""
    stacks = f"{peers.stacks.answered} ranks{whose}"
    return (
        f"`{row.name}`",
        row.expected.culprits or NONE,
        _trace_cell(peers.shipped, row),
        _trace_cell(peers.repaired, row),
        stacks if peers.stacks.status == 200 else _page_failure(peers.stacks),
        "shown" if peers.trace_page.status == 200 else _page_failure(peers.trace_page),
    )


def _page_failure(answer: object) -> str:
    status, error = getattr(answer, "status", 0), getattr(answer, "error", "")
    return f"{status or 'no answer'}: {error[:60]}"


def _trace_cell(answer: TraceAnswer, row: Row) -> str:
    if answer.error:
        return answer.error[:60]
    named = f"{answer.named or 'nobody'} in {answer.reports} reports"
    return f"{named}, right" if totals.is_trace_right(answer, row) else f"{named}, **wrong**"


def seconds(value: float | None) -> str:
    return NONE if value is None else f"{value:.1f}"


def percent(value: float | None) -> str:
    return NONE if value is None else f"{value:.1%}"
