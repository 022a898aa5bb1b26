"""What is said of an attempt that a restart has replaced, by what was last known of it. Pure.

A launcher may start a job again within two seconds, so the ranks of the attempt before may never
have been seen to end: then that alone is said. A restart hides nothing.
"""

from __future__ import annotations

import dataclasses
from datetime import datetime

from hangwatch_server import process_states, ranges
from hangwatch_server.board import JobMeta
from hangwatch_server.detect import Decision
from hangwatch_server.diagnose import process
from hangwatch_server.incidents import lifecycle
from hangwatch_server.model import Finding, Kind, RankView, Snapshot, State, Verdict
from hangwatch_server.watch import verdicts

_SIGTERM = 15


def last_word(
    meta: JobMeta,
    snapshot: Snapshot,
    finding: Finding,
    verdict: Verdict,
    attempt: int,
    now: datetime,
) -> Verdict | None:
    """The verdict to keep of the attempt that `attempt` replaced; None where there is nothing to.

    The others are of the last look at it. One that finished, or in which no rank was in training
    yet, leaves no record.
    """
    if verdict.state is State.FINISHED:
        return None
    failed = [view for view in snapshot.ranks.values() if _has_failed(view)]
    if not failed and not _has_trained(snapshot):
        return None
    how = _how(failed) or f"Nobody saw attempt {snapshot.attempt} end"
    unexplained = Finding(kind=Kind.NONE, coverage=verdict.coverage)
    known = finding if failed and finding.culprits else unexplained
    decision = Decision(
        state=State.FAILED, stalled_s=verdict.stalled_s, limits=verdict.limits, reason=how
    )
    last = verdicts.build(meta, snapshot, known, decision, verdict, now)
    summary = f"{how}; {lifecycle.restarted(attempt)}."
    return dataclasses.replace(last, summary=summary, incident=None)


def _has_failed(view: RankView) -> bool:
    if view.beat is None or not process_states.has_ended(view.beat.process):
        return False
    return bool(view.beat.process.exit_code) or view.beat.process.exit_signal is not None


def _has_trained(snapshot: Snapshot) -> bool:
    beats = (view.beat for view in snapshot.ranks.values() if view.beat is not None)
    return any(beat.is_initialised or beat.groups for beat in beats)


def _how(failed: list[RankView]) -> str:
    """ "Rank 3 exited with code 1"; those that a launcher then ended by SIGTERM are its victims."""
    first = [view for view in failed if _signal(view) != _SIGTERM] or failed
    if not first:
        return ""
    beat = first[0].beat
    assert beat is not None  # it has failed
    ended = process.exit_text(beat.process)
    who = ranges.named([view.rank for view in first[:1]])
    others = len(first) - 1
    beside = f", and {others} other{'' if others == 1 else 's'} ended badly" if others else ""
    return f"{who[:1].upper()}{who[1:]} {ended}{beside}"


def _signal(view: RankView) -> int | None:
    return view.beat.process.exit_signal if view.beat is not None else None
