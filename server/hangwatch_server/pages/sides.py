"""The differing calls of a mismatch side by side, and which of their parts differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hangwatch_server.model import MismatchSide
from hangwatch_server.pages import words


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    ranks: str
    count: int
    parts: tuple[Part, ...]
    where: str
    is_odd: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    name: str  # "call", "sizes", "type"
    text: str  # "" where the call has none
    differs: bool


def of(sides: Sequence[MismatchSide]) -> tuple[Side, ...]:
    """The most frequent call first, as the verdict has them."""
    split = [_split(side.call) for side in sides]
    differs = [len(set(column)) > 1 for column in zip(*split, strict=True)]
    names = ("call", "sizes", "type")
    return tuple(
        Side(
            ranks=side.ranks,
            count=words.count(side.ranks),
            parts=tuple(
                Part(name=name, text=text, differs=is_other)
                for name, text, is_other in zip(names, texts, differs, strict=True)
            ),
            where=side.where,
            is_odd=side.is_odd,
        )
        for side, texts in zip(sides, split, strict=True)
    )


def _split(call: str) -> tuple[str, str, str]:
    """`all_reduce [4], [8] float` as the verdict writes it: op, sizes, type."""
    start, end = call.find("["), call.rfind("]")
    if start < 0 or end < start:
        return call, "", ""
    return call[:start].strip(), call[start : end + 1], call[end + 1 :].strip()
