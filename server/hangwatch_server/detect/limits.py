"""How long a stall of this job may last before it is suspected and confirmed, and why, in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hangwatch_server import ranges
from hangwatch_server.detect import learning
from hangwatch_server.detect.memory import Memory
from hangwatch_server.detect.settings import DetectSettings
from hangwatch_server.model import Finding, Limits, RankView, Snapshot


@dataclass(frozen=True, slots=True)
class _Draft:
    suspect_s: float
    confirm_s: float
    why: tuple[str, ...]

    def at_least(self, suspect_s: float, confirm_s: float, why: str) -> _Draft:
        """Raised to these; the reason is given only where it changes something."""
        if suspect_s <= self.suspect_s and confirm_s <= self.confirm_s:
            return self
        return _Draft(
            max(suspect_s, self.suspect_s), max(confirm_s, self.confirm_s), (*self.why, why)
        )


def limits(
    memory: Memory, snapshot: Snapshot, finding: Finding, phase: str, s: DetectSettings
) -> Limits:
    """The limits of this moment.

    1. From the job's own gaps in this phase; the floors before enough of them are known.
    2. Patience where the pace of a job that runs already has not been seen yet.
    3. Put off where frozen pauses of this job have ended by themselves.
    4. Cut so that evidence is stored before the group's own timeout.
    """
    draft = _paced(memory, phase, s)
    draft = _patient(draft, memory, phase, s)
    draft = _put_off(draft, memory, s)
    latest_s = latest(snapshot, finding, s)
    if latest_s is not None and latest_s < draft.confirm_s:
        why = (
            f"cut so that evidence is stored {s.before_timeout_s:g} s before the group's timeout"
            f" of {latest_timeout_s(snapshot, finding):g} s"
        )
        draft = _Draft(min(draft.suspect_s, latest_s), latest_s, (*draft.why, why))
    return Limits(
        suspect_after_s=round(draft.suspect_s, 3),
        confirm_after_s=round(draft.confirm_s, 3),
        why="; ".join(draft.why),
    )


def _paced(memory: Memory, phase: str, s: DetectSettings) -> _Draft:
    count, pace_s = len(memory.gaps.get(phase, ())), memory.pace.get(phase, 0.0)
    suspect_s = max(s.suspect_after_s, s.suspect_p99 * pace_s)
    is_capped = suspect_s > s.suspect_most_s
    suspect_s = min(suspect_s, max(s.suspect_most_s, s.suspect_after_s))
    confirm_s = max(s.confirm_after_s, s.confirm_p99 * pace_s, suspect_s)
    why = [_pace_in_words(phase, count, pace_s, s)]
    if is_capped:
        why.append(f"a suspicion comes after {s.suspect_most_s:g} s at the latest")
    return _Draft(suspect_s, confirm_s, tuple(why))


def _pace_in_words(phase: str, count: int, pace_s: float, s: DetectSettings) -> str:
    is_over = s.suspect_p99 * pace_s > s.suspect_after_s
    relation = "over" if is_over else "under"
    floor = f"{s.suspect_after_s:g} s floor"
    if count >= s.learn_samples:
        return (
            f"{s.suspect_p99:g} x p99 ({pace_s:.1f} s) of {count} gaps in {phase} is {relation}"
            f" the {floor}"
        )
    seen = f"{count} of {s.learn_samples} gaps in {phase} seen"
    if is_over:
        return (
            f"{seen}: {s.suspect_p99:g} x the third longest of the newest"
            f" ({pace_s:.1f} s) is over the {floor}"
        )
    return f"{seen}: the floors of this start-up apply"


def _patient(draft: _Draft, memory: Memory, phase: str, s: DetectSettings) -> _Draft:
    if len(memory.gaps.get(phase, ())) >= s.learn_samples:
        return draft
    before = memory.inherited
    if before is not None:
        suspect_s = min(before.suspect_after_s, s.suspect_most_s)
        return draft.at_least(
            suspect_s,
            before.confirm_after_s,
            f"not under the {suspect_s:g} s and {before.confirm_after_s:g} s from before the"
            " server's restart, until the pace is known again",
        )
    if not memory.is_midway:
        return draft
    return draft.at_least(
        draft.suspect_s,
        s.unseen_confirm_s,
        f"this job ran before it was watched: nothing is a hang before {s.unseen_confirm_s:g} s"
        " until its pace is known",
    )


def _put_off(draft: _Draft, memory: Memory, s: DetectSettings) -> _Draft:
    put_off_s = learning.put_off_s(memory.recovered, s)
    if put_off_s is None:
        return draft
    return draft.at_least(
        draft.suspect_s,
        put_off_s,
        f"put off to {put_off_s:.0f} s: {len(memory.recovered)} frozen pauses of up to"
        f" {max(memory.recovered):.0f} s ended by themselves",
    )


def latest(snapshot: Snapshot, finding: Finding, s: DetectSettings) -> float | None:
    """The age at which a stall of the finding's group must be decided; None without a timeout.

    Never under the suspect floor: a shorter timeout of the group's own leaves nothing to wait for.
    """
    timeout_s = latest_timeout_s(snapshot, finding)
    return None if timeout_s is None else max(s.suspect_after_s, timeout_s - s.before_timeout_s)


def latest_timeout_s(snapshot: Snapshot, finding: Finding) -> float | None:
    """The timeout of the call that the finding's ranks wait in, as the job itself set it."""
    if finding.group is None or not finding.waiting:
        return None
    view = snapshot.ranks.get(ranges.parse(finding.waiting)[0])
    of_call_s = _least(_of_entries(() if view is None else (view,), finding.group.id))
    if of_call_s is not None:
        return of_call_s
    group = snapshot.groups.get(finding.group.id)
    return _least((group.timeout_s,)) if group is not None else None


def shortest_timeout_s(snapshot: Snapshot) -> float | None:
    """The shortest timeout of any group of the job; None where none is known."""
    of_groups = (group.timeout_s for group in snapshot.groups.values())
    return _least((*_of_entries(snapshot.ranks.values(), None), *of_groups))


def _of_entries(views: Iterable[RankView], gid: str | None) -> Iterator[float | None]:
    for view in views:
        for group in view.beat.groups if view.beat is not None else ():
            if gid is None or group.gid == gid:
                yield from (e.timeout_s for e in group.entries if gid is None or not e.is_retired)


def _least(timeouts: Iterable[float | None]) -> float | None:
    """A job's own numbers can be anything: only a positive, finite one is a timeout."""
    known = (timeout_s for timeout_s in timeouts if timeout_s is not None)
    return min((t for t in known if math.isfinite(t) and t > 0), default=None)
