"""Rank sets as text, as the whole product writes them: `0-3,7,0-1016:8`. Not for unbounded input.

The server has its own module of this name, since it may import nothing but `wire` from the agent;
a test holds both to the same text. Sets are handled as runs of neighbours, so that two runs of
100,000 ranks take two steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

MAX_RANKS = 1_000_000
_PART = re.compile(r"(\d{1,7})(?:-(\d{1,7})(?::(\d{1,7}))?)?")

Run = tuple[int, int]  # first and last of neighbouring ranks


@dataclass(frozen=True)
class Size:
    """What a rank set's text comes to, known without listing the ranks."""

    members: int  # repeats included
    highest: int
    steps: int  # that `sorted_text` takes


def text(ranks: Iterable[int]) -> str:
    """Compress ranks, in any order and with repeats, to range text."""
    return _text(_merged([(rank, rank) for rank in ranks]))


def size(spec: str) -> int:
    """How many ranks `spec` lists, repeats included; 0 when it cannot be read."""
    found = measured(spec)
    return found.members if found else 0


def measured(spec: str) -> Size | None:
    """What `spec` comes to; None when it cannot be read, or lists no ranks."""
    parts = _parts(spec)
    if not parts:
        return None
    is_alone = len(parts) == 1
    return Size(
        members=sum(map(len, parts)),
        highest=max(part[-1] for part in parts),
        steps=sum(1 if is_alone or part.step == 1 else len(part) for part in parts),
    )


def sorted_text(spec: str) -> str | None:
    """Range text of the ranks in `spec`, in whatever order; None when it cannot be read."""
    parts = _parts(spec)
    if parts is None:
        return None
    if len(parts) == 1 and parts[0].step > 1 and len(parts[0]) > 2:
        return f"{parts[0][0]}-{parts[0][-1]}:{parts[0].step}"
    runs: list[Run] = []
    for part in parts:
        if part.step == 1:
            runs.append((part[0], part[-1]))
        else:
            runs.extend((rank, rank) for rank in part)
    return _text(_merged(runs))


def _parts(spec: str) -> list[range] | None:
    """The parts of a rank set, none of them empty; None when it cannot be read or is too large."""
    parts = []
    left = MAX_RANKS
    for word in filter(None, spec.split(",")):
        match = _PART.fullmatch(word.strip())
        if match is None:
            return None
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if step == 0:
            return None
        part = range(first, last + 1, step)
        left -= len(part)
        if left < 0:
            return None
        if part:
            parts.append(part)
    return parts


def _merged(runs: list[Run]) -> list[Run]:
    """The same ranks as runs in order, each as long as can be."""
    found: list[Run] = []
    for first, last in sorted(runs):
        if found and first <= found[-1][1] + 1:
            if last > found[-1][1]:
                found[-1] = found[-1][0], last
        else:
            found.append((first, last))
    return found


def _text(runs: list[Run]) -> str:
    """Written out: runs as they are, lone ranks with equal gaps as one stride."""
    parts: list[str] = []
    at = 0
    while at < len(runs):
        first, last = runs[at]
        if first < last:
            parts.append(f"{first}-{last}")
            at += 1
            continue
        end = _stride_end(runs, at)
        if end - at < 2:
            parts.append(str(first))
            at += 1
            continue
        reached, last = runs[end]
        parts.append(f"{first}-{reached}:{runs[at + 1][0] - first}")
        at = end + 1
        if reached < last:  # the stride ends with the first rank of a run, whose others remain
            at = end
            runs[at] = reached + 1, last
    return ",".join(parts)


def _stride_end(runs: list[Run], at: int) -> int:
    """The index of the last run whose first rank continues the stride that begins at a lone one."""
    end = at + 1
    if end >= len(runs):
        return at
    step = runs[end][0] - runs[at][0]
    while (
        runs[end][0] == runs[end][1]
        and end + 1 < len(runs)
        and runs[end + 1][0] - runs[end][0] == step
    ):
        end += 1
    return end
