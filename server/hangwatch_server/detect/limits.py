"""How long a stall of this job may last before it is suspected and confirmed, and why, in words."""

from __future__ import annotations

from hangwatch_server import ranges
from hangwatch_server.detect.memory import Memory
from hangwatch_server.detect.progress import TRAINING
from hangwatch_server.detect.settings import DetectSettings
from hangwatch_server.model import Finding, Limits, Snapshot


def limits(memory: Memory, snapshot: Snapshot, finding: Finding, s: DetectSettings) -> Limits:
    """Learned from the job's own gaps in training; floors before enough of them are known."""
    count = len(memory.gaps.get(TRAINING, ()))
    p99_s = memory.p99.get(TRAINING, 0.0) if count >= s.learn_samples else 0.0
    suspect_s = min(max(s.suspect_after_s, s.suspect_p99 * p99_s), s.suspect_most_s)
    confirm_s = max(s.confirm_after_s, s.confirm_p99 * p99_s, suspect_s)
    why = _why(count, p99_s, s)
    latest_s = latest(snapshot, finding, s)
    if latest_s is not None and latest_s < confirm_s:
        suspect_s, confirm_s = min(suspect_s, latest_s), latest_s
        why += (
            f"; cut so that evidence is stored {s.before_timeout_s:g} s before the group's timeout"
        )
    return Limits(suspect_after_s=suspect_s, confirm_after_s=confirm_s, why=why)


def _why(count: int, p99_s: float, s: DetectSettings) -> str:
    if count < s.learn_samples:
        return f"{count} of {s.learn_samples} gaps seen: the floors of this start-up apply"
    relation = "over" if s.suspect_p99 * p99_s > s.suspect_after_s else "under"
    return (
        f"{s.suspect_p99:g} x p99 ({p99_s:.1f} s) is {relation} the {s.suspect_after_s:g} s floor"
    )


def latest(snapshot: Snapshot, finding: Finding, s: DetectSettings) -> float | None:
    """The age at which a stall of the finding's group must be decided; None without a timeout.

    Never under the suspect floor: a shorter timeout of the group's own leaves nothing to wait for.
    """
    timeout_s = _timeout_s(snapshot, finding)
    return None if timeout_s is None else max(s.suspect_after_s, timeout_s - s.before_timeout_s)


def _timeout_s(snapshot: Snapshot, finding: Finding) -> float | None:
    if finding.group is None or not finding.waiting:
        return None
    view = snapshot.ranks.get(ranges.parse(finding.waiting)[0])
    groups = view.beat.groups if view and view.beat else ()
    entries = (
        entry for group in groups if group.gid == finding.group.id for entry in group.entries
    )
    known = [entry.timeout_s for entry in entries if entry.timeout_s and not entry.is_retired]
    return min(known, default=None)
