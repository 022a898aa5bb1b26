"""Findings without a wait: nothing to report, or nobody moves although nobody waits."""

from __future__ import annotations

from collections.abc import Iterator

from hangwatch_agent.wire import Depth
from hangwatch_server.diagnose import process, standing
from hangwatch_server.diagnose.coverage import coverage
from hangwatch_server.diagnose.process import Fate
from hangwatch_server.diagnose.survey import Survey
from hangwatch_server.diagnose.telling import sentences
from hangwatch_server.model import Evidence, Finding, Kind

_MAX_EVIDENCE = 8
_CONFIDENCE = 0.3  # it may as well be one long step


def finding(looked: Survey) -> Finding:
    """`no_progress` when every rank that can move has been still for long, else `none`."""
    still_s = _still_s(looked)
    if still_s is not None and still_s >= looked.settings.no_progress_after_s:
        return Finding(
            kind=Kind.NO_PROGRESS,
            summary=(
                f"No rank is in a collective and none has moved for {sentences.seconds(still_s)}: "
                "a long step, or all ranks are busy outside of communication."
            ),
            confidence=_CONFIDENCE,
            coverage=coverage(looked.snapshot),
            stalled_s=still_s,
            key=Kind.NO_PROGRESS.value,
        )
    return Finding(
        kind=Kind.NONE,
        confidence=1.0,
        evidence=tuple(_deaths(looked)),
        coverage=coverage(looked.snapshot),
        key=Kind.NONE.value,
    )


def _still_s(looked: Survey) -> float | None:
    """How long the most recent mover has been still; None when no rank could move."""
    times: list[float] = []
    for rank, view in looked.snapshot.ranks.items():
        beat = view.beat
        if beat is None or beat.is_destroyed:
            continue
        if looked.fate(rank) in (Fate.GONE, Fate.SILENT, Fate.LATE):
            continue
        if beat.groups:
            times.append(standing.quiet_s(view))
        elif beat.depth is Depth.BARE and beat.process.main_still_s is not None:
            times.append(beat.process.main_still_s + view.age_s)
    return min(times) if times else None


def _deaths(looked: Survey) -> Iterator[Evidence]:
    shown = 0
    for rank, view in looked.snapshot.ranks.items():
        if view.beat is None or looked.fate(rank) is not Fate.GONE or shown >= _MAX_EVIDENCE:
            continue
        facts = view.beat.process
        if facts.exit_code != 0 or facts.exit_signal is not None:
            shown += 1
            text = f"Rank {rank}'s process {view.beat.pid} {process.exit_text(facts)}."
            yield Evidence(kind="process", text=text)
