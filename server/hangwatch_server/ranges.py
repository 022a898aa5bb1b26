"""Rank sets as text: `0-3,7,9-511`, with strides as in `0-1016:8`. Knows nothing of jobs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from hangwatch_server.errors import BadRangeError

MAX_RANKS = 1_000_000
_PART = re.compile(r"(\d{1,7})(?:-(\d{1,7})(?::(\d{1,7}))?)?")


def text(ranks: Iterable[int]) -> str:
    """Compress ranks, in any order and with repeats; three or more in step make a run."""
    ordered = sorted(set(ranks))
    parts: list[str] = []
    start = 0
    while start < len(ordered):
        end = _run_end(ordered, start)
        parts.append(_part(ordered, start, end))
        start = end + 1
    return ",".join(parts)


def named(ranks: Iterable[int]) -> str:
    """ "rank 5" or "ranks 2-3", for sentences."""
    numbers = set(ranks)
    return f"rank{'' if len(numbers) == 1 else 's'} {text(numbers)}"


def agreeing(ranks: Iterable[int], one: str, many: str) -> str:
    """ "rank 5 is" or "ranks 2-3 are": the ranks with the form of the verb that goes with them."""
    numbers = set(ranks)
    return f"{named(numbers)} {one if len(numbers) == 1 else many}"


def parse(spec: str) -> tuple[int, ...]:
    """Expand range text to sorted ranks; raise BadRangeError with the offending part."""
    ranks: set[int] = set()
    for span in _spans(spec):
        ranks.update(span)
    return tuple(sorted(ranks))


def below(spec: str, end: int) -> frozenset[int]:
    """The ranks of a text that are less than `end`, at no cost for the others; raise as `parse`."""
    ranks: set[int] = set()
    for span in _spans(spec):
        ranks.update(range(span.start, min(span.stop, end), span.step))
    return frozenset(ranks)


def holds(spec: str, rank: int) -> bool:
    """Whether a text made by `text` names this rank, without listing any; raise as `parse` does."""
    if spec.isdecimal():
        return int(spec) == rank
    return any(rank in span for span in _spans(spec))


def size(spec: str) -> int:
    """How many ranks a text made by `text` holds, without listing any; raise as `parse` does."""
    return sum(len(span) for span in _spans(spec))


def highest(spec: str) -> int | None:
    """The highest rank without listing any, None without ranks; raise as `parse` does."""
    return max((span[-1] for span in _spans(spec)), default=None)


def _spans(spec: str) -> Iterator[range]:
    """The parts of range text, at most MAX_RANKS in all, repeats included."""
    count = 0
    for part in filter(None, (piece.strip() for piece in spec.split(","))):
        match = _PART.fullmatch(part)
        if match is None:
            raise BadRangeError(part)
        first, last, step = (int(value) if value else None for value in match.groups())
        assert first is not None  # the pattern's first group is not optional
        span = range(first, (last if last is not None else first) + 1, step or 1)
        count += len(span)
        if not span or step == 0 or count > MAX_RANKS:
            raise BadRangeError(part)
        yield span


def _run_end(ordered: list[int], start: int) -> int:
    """Index of the last rank of the run from `start`; a pair is a run only when adjacent."""
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
