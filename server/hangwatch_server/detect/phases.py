"""Phases in which a long wait is expected: recognised from stacks, children and counters, or
announced by the user. Also the name of the phase in which a gap is learned.

Waiting for a batch is no phase, and a phase whose name says nothing of the kind ("train") is none
either, unless it was announced with a limit.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from hangwatch_server.detect import progress
from hangwatch_server.detect.learning import TRAINING
from hangwatch_server.detect.settings import DetectSettings
from hangwatch_server.model import Activity, RankView, Snapshot

_NAMES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("loading", re.compile(r"load|restore|resume|init|warm", re.IGNORECASE)),
    ("checkpoint", re.compile(r"checkpoint|ckpt|sav(e|ing)", re.IGNORECASE)),
    ("compile", re.compile(r"compil", re.IGNORECASE)),
    ("evaluation", re.compile(r"^eval|valid|^test", re.IGNORECASE)),
)
_TRAIN = re.compile(r"^train", re.IGNORECASE)
_ACTIVITIES = {
    Activity.COMPILE: "compile",
    Activity.CHECKPOINT: "checkpoint",
    Activity.EVALUATION: "evaluation",
    Activity.MODEL_LOADING: "loading",
}
_ELSEWHERE = "collectives of other groups"
_LONGEST_NAME = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    name: str
    limit_s: float
    spent_s: float  # in the phase where it was announced, else of the stall
    is_announced: bool
    kind: str = ""  # under which its gaps are learned; "" as its name


def of(view: RankView, stalled_s: float, s: DetectSettings) -> Phase | None:
    """The phase that this rank is in; the user's word comes before what its stack shows."""
    return _announced(view, s) or _recognised(view, stalled_s, s) or _elsewhere(view, stalled_s, s)


def goes_on_elsewhere(view: RankView, stalled_s: float, s: DetectSettings) -> bool:
    """Whether a rank that is waited for calls other collectives meanwhile.

    So do the ranks of a group that evaluates while all others wait in a barrier.
    """
    if view.beat is None or not view.beat.groups:
        return False
    heard_s = progress.unmoved_s(view)
    if heard_s is None:
        return False
    # As of its last heartbeat: an agent that restarts does not stop its ranks.
    quiet_s = heard_s - view.age_s
    return quiet_s < s.moving_counter_s <= stalled_s - heard_s


def learned(snapshot: Snapshot, current: Phase | None) -> str:
    """The phase whose gaps this moment belongs to: a culprit's, else what most ranks announce."""
    if current is not None:
        return (current.kind or current.name)[:_LONGEST_NAME]
    announced = Counter(
        view.beat.phase for view in snapshot.ranks.values() if view.beat and view.beat.phase
    )
    if not announced:
        return TRAINING
    name = announced.most_common(1)[0][0]
    return TRAINING if _TRAIN.search(name) else (_kind(name) or name.lower())[:_LONGEST_NAME]


def _kind(name: str) -> str:
    return next((kind for kind, pattern in _NAMES if pattern.search(name)), "")


def _announced(view: RankView, s: DetectSettings) -> Phase | None:
    beat = view.beat
    if beat is None or not beat.phase:
        return None
    kind = _kind(beat.phase)
    limit_s = beat.phase_limit_s if beat.phase_limit_s is not None else _limit_s(kind, s)
    if limit_s is None:
        return None
    return Phase(
        name=beat.phase,
        limit_s=limit_s,
        spent_s=beat.phase_s + view.age_s,
        is_announced=True,
        kind=kind or beat.phase.lower(),
    )


def _recognised(view: RankView, stalled_s: float, s: DetectSettings) -> Phase | None:
    is_current = view.stack is not None and view.stack.age_s <= stalled_s
    name = _ACTIVITIES.get(view.stack.activity, "") if view.stack and is_current else ""
    children = view.beat.process.children if view.beat else ()
    if not name and any(
        child.role == "compile" and (child.cpu_share or 0.0) >= s.working_cpu_share
        for child in children
    ):
        name = "compile"
    limit_s = _limit_s(name, s)
    if limit_s is None:
        return None
    return Phase(name=name, limit_s=limit_s, spent_s=stalled_s, is_announced=False)


def _elsewhere(view: RankView, stalled_s: float, s: DetectSettings) -> Phase | None:
    if not goes_on_elsewhere(view, stalled_s, s):
        return None
    return Phase(
        name=_ELSEWHERE,
        limit_s=s.evaluation_limit_s,
        spent_s=stalled_s,
        is_announced=False,
        kind="evaluation",
    )


def _limit_s(name: str, s: DetectSettings) -> float | None:
    return {
        "compile": s.compile_limit_s,
        "checkpoint": s.checkpoint_limit_s,
        "evaluation": s.evaluation_limit_s,
        "loading": s.loading_limit_s,
    }.get(name)
