"""The body of `hangwatch diagnose`: finds the files, and shows the report as text or JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from hangwatch_server import offline
from hangwatch_server.errors import HangwatchError
from hangwatch_server.offline import FileRow, JobReport, Outcome, Report
from hangwatch_server.offline.read import MAX_FILE_BYTES

MAX_FILES = 100_000
MAX_ROWS = 20  # of files that were not used
FINE, HANG, UNKNOWN = 0, 1, 2
_WORDS = {
    Outcome.HANG: "hang",
    Outcome.NOTHING: "no hang in these files",
    Outcome.UNKNOWN: "unknown",
}


class NoFileError(HangwatchError):
    """A name that is no file, or nothing to read."""


def run(paths: Sequence[str], *, as_json: bool, show: Callable[[str], None]) -> int:
    """Read, diagnose and show; the exit code says what was found."""
    report = offline.examine(_files(paths), datetime.now(UTC))
    if as_json:
        show(msgspec.json.format(offline.document(report), indent=2).decode())
    else:
        show("\n".join(lines(report)))
    return code(report)


def code(report: Report) -> int:
    outcomes = {job.outcome for job in report.jobs}
    if Outcome.HANG in outcomes:
        return HANG
    return FINE if outcomes == {Outcome.NOTHING} else UNKNOWN


def lines(report: Report) -> Iterator[str]:
    """The report for people, worst news first."""
    for job in sorted(report.jobs, key=lambda item: list(Outcome).index(item.outcome)):
        yield from _job(job)
        yield ""
    used = [row for row in report.files if row.is_used]
    yield f"{len(used)} of {len(report.files)} files were used."
    told = [row for row in report.files if row.note]
    yield from (_row(row) for row in told[:MAX_ROWS])
    if len(told) > MAX_ROWS:
        yield f"  and {len(told) - MAX_ROWS} more: --json lists them all"


def _job(job: JobReport) -> Iterator[str]:
    verdict = job.verdict
    yield f"{job.name}: {_WORDS[job.outcome]}"
    yield f"  {verdict.summary}"
    if job.outcome is Outcome.HANG:
        yield f"  kind        {verdict.kind}, confidence {verdict.confidence:.0%}"
        for culprit in verdict.culprits[:16]:
            where = f": {culprit.where}" if culprit.where else ""
            yield f"  culprit     rank {culprit.rank}, {culprit.condition}{where}"
        if verdict.waiting:
            yield f"  waiting     ranks {verdict.waiting}"
        for side in verdict.sides:
            yield f"  call        ranks {side.ranks}: {side.call}"
        for item in verdict.evidence:
            yield f"  evidence    {item.text}"
        for hint in verdict.hints:
            yield f"  hint        {hint}"
    for note in job.notes:
        yield f"  note        {note}"
    have = [
        f"dumps of ranks {job.dumps}" if job.dumps else "",
        f"stacks of ranks {job.stacks}" if job.stacks else "",
    ]
    read = " and ".join(filter(None, have)) or "RAS alone"
    yield f"  read        {read}, of {verdict.coverage.world_size} ranks"
    if job.tree is not None:
        for group in job.tree.classes[:8]:
            yield f"  stack       {group.where} (ranks {group.ranks})"


def _row(row: FileRow) -> str:
    remedy = f"; {row.remedy}" if row.remedy else ""
    return f"  {row.name}: {row.note}{remedy}"


def _files(paths: Sequence[str]) -> Iterator[offline.File]:
    """Each file when its turn comes, so that a thousand dumps need the memory of one."""
    for path in _found(paths):
        try:
            with path.open("rb") as stream:
                data = stream.read(MAX_FILE_BYTES + 1)
        except OSError as error:
            raise NoFileError(f"{path} cannot be read: {error.strerror}") from error
        yield offline.File(name=str(path), data=data)


def _found(paths: Sequence[str]) -> list[Path]:
    found: list[Path] = []
    for text in paths:
        path = Path(text)
        if path.is_dir():
            found += sorted(item for item in path.rglob("*") if item.is_file())
        elif path.is_file():
            found.append(path)
        else:
            raise NoFileError(f"there is no file {text}: give files, or folders of them")
    if not found:
        raise NoFileError("there is no file in the folders that were given")
    return found[:MAX_FILES]
