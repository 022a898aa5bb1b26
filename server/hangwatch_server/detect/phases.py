"""Phases in which a long wait is expected: recognised from stacks and children, or announced by
the user.

Waiting for a batch is no phase, and a phase whose name says nothing of the kind ("train") is none
either, unless it was announced with a limit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hangwatch_server.detect.settings import DetectSettings
from hangwatch_server.model import Activity, RankView

_NAMES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("loading", re.compile(r"load|restore|resume|init|warm", re.IGNORECASE)),
    ("checkpoint", re.compile(r"checkpoint|ckpt|sav(e|ing)", re.IGNORECASE)),
    ("compile", re.compile(r"compil", re.IGNORECASE)),
    ("evaluation", re.compile(r"^eval|valid|^test", re.IGNORECASE)),
)
_ACTIVITIES = {
    Activity.COMPILE: "compile",
    Activity.CHECKPOINT: "checkpoint",
    Activity.EVALUATION: "evaluation",
    Activity.MODEL_LOADING: "loading",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    name: str
    limit_s: float
    spent_s: float  # in the phase where it was announced, else of the stall
    is_announced: bool


def of(view: RankView, stalled_s: float, s: DetectSettings) -> Phase | None:
    """The phase that this rank is in; the user's word comes before what its stack shows."""
    return _announced(view, s) or _recognised(view, stalled_s, s)


def _announced(view: RankView, s: DetectSettings) -> Phase | None:
    beat = view.beat
    if beat is None or not beat.phase:
        return None
    kind = next((name for name, pattern in _NAMES if pattern.search(beat.phase)), "")
    limit_s = beat.phase_limit_s if beat.phase_limit_s is not None else _limit_s(kind, s)
    if limit_s is None:
        return None
    spent_s = beat.phase_s + view.age_s
    return Phase(name=beat.phase, limit_s=limit_s, spent_s=spent_s, is_announced=True)


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


def _limit_s(name: str, s: DetectSettings) -> float | None:
    return {
        "compile": s.compile_limit_s,
        "checkpoint": s.checkpoint_limit_s,
        "evaluation": s.evaluation_limit_s,
        "loading": s.loading_limit_s,
    }.get(name)
