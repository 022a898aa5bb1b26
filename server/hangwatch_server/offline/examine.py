"""Files in, report out: each file read, sorted into jobs, and each job diagnosed. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

import msgspec

from hangwatch_server import diagnose, ranges, stacks
from hangwatch_server.model import (
    Action,
    Culprit,
    Finding,
    Kind,
    Limits,
    Snapshot,
    State,
    Tree,
    Verdict,
)
from hangwatch_server.offline import read, snapshot, sorting
from hangwatch_server.offline.model import File, FileRow, JobReport, Outcome, Reading, Report
from hangwatch_server.offline.sorting import Pile

_STATES = {
    Outcome.HANG: State.HUNG,
    Outcome.NOTHING: State.HEALTHY,
    Outcome.UNKNOWN: State.UNKNOWN,
}
_BELOW = 0.3  # a finding less sure than this is no hang
_EMPTY_DUMP = "it holds no calls: the recorder was off (TORCH_FR_BUFFER_SIZE) or the rank made none"


def examine(
    files: Iterable[File],
    now: datetime,
    *,
    native: bool = False,
    may_go_on: Callable[[], bool] = lambda: True,
) -> Report:
    """Everything that these files say; `now` only dates the verdict. Files are read one by one, so
    that an iterator over many of them needs the memory of one; once `may_go_on` says no, the rest
    is listed as not read.
    """
    readings = [read.read(file) if may_go_on() else read.unread(file) for file in files]
    sorted_out = sorting.sort(item for item in readings if not item.problem)
    jobs = tuple(_job(pile, now, native) for pile in sorted_out.piles)
    rows = tuple(_row(item, sorted_out.why_unused.get(id(item), "")) for item in readings)
    return Report(jobs=jobs, files=rows)


def _row(item: Reading, why_unused: str) -> FileRow:
    why = item.problem or why_unused
    note = why
    if not why and item.dump is not None and not item.dump.entries:
        note = _EMPTY_DUMP
    return FileRow(
        name=item.name,
        size_bytes=item.size_bytes,
        kind=item.kind,
        rank=item.rank,
        is_used=not why,
        note=note,
        remedy=item.remedy,
    )


def _job(pile: Pile, now: datetime, native: bool) -> JobReport:
    seen = snapshot.build(pile)
    finding = diagnose.diagnose(seen)[0]
    outcome = _outcome(pile, seen, finding)
    if outcome is not Outcome.HANG:
        finding = Finding(
            kind=Kind.NONE, confidence=finding.confidence, coverage=diagnose.coverage(seen)
        )
    return JobReport(
        name=pile.name,
        outcome=outcome,
        verdict=_verdict(pile, finding, outcome, now),
        dumps=ranges.text(pile.dumps),
        stacks=ranges.text(pile.stacks),
        tree=_tree(pile, native),
        notes=(*pile.notes, *_notes(pile, seen)),
    )


def _outcome(pile: Pile, seen: Snapshot, finding: Finding) -> Outcome:
    if finding.kind not in (Kind.NONE, Kind.NO_PROGRESS) and finding.confidence >= _BELOW:
        return Outcome.HANG
    is_whole = bool(pile.dumps) and len(pile.dumps) >= seen.world_size
    has_calls = any(item.dump is not None and item.dump.entries for item in pile.dumps.values())
    return Outcome.NOTHING if is_whole and has_calls else Outcome.UNKNOWN


def _verdict(pile: Pile, finding: Finding, outcome: Outcome, now: datetime) -> Verdict:
    return Verdict(
        job="",
        name=pile.name,
        attempt=1,
        index=0,
        state=_STATES[outcome],
        kind=finding.kind,
        confidence=finding.confidence,
        since=now,
        stalled_s=0.0,
        summary=finding.summary or _summary(pile, outcome),
        group=finding.group,
        seq=finding.seq,
        op=finding.op,
        culprits=tuple(map(_without_pid, (*finding.culprits, *finding.besides))),
        culprit_ranks=finding.culprit_ranks,
        waiting=finding.waiting,
        path=finding.path,
        edges=finding.edges,
        cycle=finding.cycle,
        sides=finding.sides,
        evidence=finding.evidence,
        hints=finding.hints,
        coverage=finding.coverage,
        action=Action(),
        limits=Limits(suspect_after_s=0.0, confirm_after_s=0.0, why=""),
        causes=finding.causes,
    )


def _without_pid(culprit: Culprit) -> Culprit:
    return culprit if culprit.pid else dataclasses.replace(culprit, pid=None)


def _summary(pile: Pile, outcome: Outcome) -> str:
    if outcome is Outcome.NOTHING:
        return (
            "No rank holds up another by these dumps: every call that one rank entered, the others "
            "entered too, and all of them are finished."
        )
    if not pile.dumps and pile.stacks:
        return (
            "Stacks alone do not say which call a rank waits in: add the recorder's dumps of the "
            "same ranks. The merged stacks below show who stands elsewhere than the rest."
        )
    return "Too little is in these files to say who holds up whom."


def _tree(pile: Pile, native: bool) -> Tree | None:
    now, before = snapshot.parts(pile.stacks, -1), snapshot.parts(pile.stacks, -2)
    if not now:
        return None
    roots, classes = stacks.merge(now, before, native=native)
    return Tree(capture="", roots=roots, classes=classes, missing=())


def _notes(pile: Pile, seen: Snapshot) -> Sequence[str]:
    notes = []
    silent = [rank for rank in range(seen.world_size) if seen.ranks[rank].beat is None]
    if silent and pile.dumps:
        verb = "has" if len(silent) == 1 else "have"
        which = ranges.text(silent)
        notes.append(
            f"{len(silent)} of {seen.world_size} ranks {verb} no dump here ({which}): "
            "what they did can only be told from the others."
        )
    if guessed := snapshot.guessed(pile):
        notes.append(
            f"No dump says who belongs to group {', '.join(guessed[:5])}: its members are taken "
            "from the calls, so a member that never called on it is not missed."
        )
    if len(pile.ras) == 1:
        notes.append(
            "One answer of NCCL RAS cannot tell a hang from a busy moment: ask it again some "
            "seconds later, and give both answers."
        )
    return notes


def document(report: Report) -> bytes:
    """The report as JSON, its words as in the REST contract."""
    plain = msgspec.to_builtins(report)
    for job in plain["jobs"]:
        for step in (*job["verdict"]["path"], *job["verdict"]["cycle"]):
            step["for"] = step.pop("for_")
    return msgspec.json.encode(plain)
