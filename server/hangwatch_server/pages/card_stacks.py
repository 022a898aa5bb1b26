"""A culprit's stack as its card shows it: the user's own lines, the framework's folded between.

Innermost first. The merged tree below the cards has every frame.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from hangwatch_server.pages.stack_segments import StackLine

MAX_LINES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class CardLine:
    """One frame, or several of the framework's that stand in one line until they are asked for."""

    frames: tuple[StackLine, ...]
    is_run: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CardStack:
    lines: tuple[CardLine, ...]
    more: int  # frames that are not here


def of(frames: Sequence[StackLine]) -> CardStack:
    """Folds runs of the framework's frames; a stack without a line of the user's has none."""
    is_foldable = any(not frame.is_framework for frame in frames)
    lines: list[CardLine] = []
    for is_framework, run in itertools.groupby(frames, key=lambda frame: frame.is_framework):
        if is_framework and is_foldable:
            lines.append(CardLine(frames=tuple(run), is_run=True))
        else:
            lines.extend(CardLine(frames=(frame,), is_run=False) for frame in run)
    shown = lines[:MAX_LINES]
    return CardStack(lines=tuple(shown), more=len(frames) - sum(len(line.frames) for line in shown))
