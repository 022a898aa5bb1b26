"""What a job's own gaps teach: its pace in each phase, and how far to put off the next alarm."""

from __future__ import annotations

import math
from dataclasses import replace

from hangwatch_server.detect.memory import Memory, Stall
from hangwatch_server.detect.settings import DetectSettings

TRAINING = "training"
# Names of phases come from the job: so many are told apart, further ones count as training.
_MAX_PHASES = 16
_PUT_OFF = 1.5  # times the longest frozen pause that ended by itself
_PUT_OFF_AFTER = 2  # such pauses; one may be a hang that somebody resolved by hand
_KEPT_PAUSES = 6


def learn(memory: Memory, stall: Stall, gap_s: float, s: DetectSettings) -> Memory:
    """The memory with one more gap: it teaches only because it ended in progress."""
    phase = phase_of(memory, stall)
    gaps = (*memory.gaps.get(phase, ()), max(0.0, gap_s))[-s.learn_window :]
    recovered = memory.recovered
    if stall.was_frozen or stall.is_hung:
        recovered = (*recovered, gap_s)[-_KEPT_PAUSES:]
    return replace(
        memory,
        gaps={**memory.gaps, phase: gaps},
        pace={**memory.pace, phase: pace_s(gaps, s)},
        recovered=recovered,
    )


def phase_of(memory: Memory, stall: Stall) -> str:
    """The phase in which the gaps of this stall are kept."""
    name = stall.phase or TRAINING
    return name if name in memory.gaps or len(memory.gaps) < _MAX_PHASES else TRAINING


def pace_s(gaps: tuple[float, ...], s: DetectSettings) -> float:
    """The gap that is long for this job, but not odd.

    The 99th percentile, yet never one of the two longest: of fewer than 200 gaps the percentile is
    the longest or second longest, and one odd pause would set the limits. Before enough are known
    the third longest of the newest few: it gives way where steps are plainly long, and forgets a
    slow start soon.
    """
    if len(gaps) < s.learn_samples:
        gaps = gaps[-s.learn_early :]
    if len(gaps) < 3:
        return 0.0
    return sorted(gaps)[min(math.ceil(0.99 * len(gaps)) - 1, len(gaps) - 3)]


def put_off_s(recovered: tuple[float, ...], s: DetectSettings) -> float | None:
    """Until when to wait with an alarm because frozen pauses of this job end by themselves."""
    if len(recovered) < _PUT_OFF_AFTER:
        return None
    return min(_PUT_OFF * max(recovered), s.put_off_most_s)
