"""Rank sets as text, as the whole product writes them: `0-3,7,0-1016:8`. Not for unbounded input.

The server has its own module of this name, since it may import nothing but `wire` from the agent;
a test holds both to the same text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

MAX_RANKS = 1_000_000
_PART = re.compile(r"(\d{1,7})(?:-(\d{1,7})(?::(\d{1,7}))?)?")


def text(ranks: Iterable[int]) -> str:
    """Compress ranks, in any order and with repeats, to range text."""
    ordered = sorted(set(ranks))
    parts: list[str] = []
    start = 0
    while start < len(ordered):
        end = _run_end(ordered, start)
        parts.append(_part(ordered, start, end))
        start = end + 1
    return ",".join(parts)


# Every heartbeat asks for every group of every rank; the answers hardly ever change.
@lru_cache(maxsize=4096)
def size(spec: str) -> int:
    """About how many ranks `spec` lists, repeats included, without listing them."""
    return sum(
        max(0, int(match[2] or match[1]) - int(match[1])) // max(1, int(match[3] or 1)) + 1
        for match in _PART.finditer(spec)
    )


@lru_cache(maxsize=4096)
def sorted_text(spec: str) -> str | None:
    """Range text of the ranks in `spec`, in whatever order; None when it cannot be read."""
    ranks: set[int] = set()
    for part in filter(None, spec.split(",")):
        match = _PART.fullmatch(part.strip())
        if match is None:
            return None
        first = int(match[1])
        last = int(match[2]) if match[2] else first
        step = int(match[3]) if match[3] else 1
        if step == 0 or (last - first) // step >= MAX_RANKS - len(ranks):
            return None
        ranks.update(range(first, last + 1, step))
    return text(ranks)


def _run_end(ordered: list[int], start: int) -> int:
    if start + 1 >= len(ordered):
        return start
    step = ordered[start + 1] - ordered[start]
    end = start + 1
    while end + 1 < len(ordered) and ordered[end + 1] - ordered[end] == step:
        end += 1
    return end if step == 1 or end - start >= 2 else start


def _part(ordered: list[int], start: int, end: int) -> str:
    if start == end:
        return str(ordered[start])
    step = ordered[start + 1] - ordered[start]
    suffix = "" if step == 1 else f":{step}"
    return f"{ordered[start]}-{ordered[end]}{suffix}"
