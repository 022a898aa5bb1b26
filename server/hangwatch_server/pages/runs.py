"""Runs instead of repeats: how long lists of much the same travel to the browser."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import groupby
from typing import TypeVar

T = TypeVar("T", bound=Hashable)
Counts = list[tuple[int | None, int]]  # runs of numbers in step: the first, and how many


def of(values: Iterable[T]) -> list[tuple[T, int]]:
    """`a, a, b` as (a, 2), (b, 1)."""
    return [(value, sum(1 for _ in run)) for value, run in groupby(values)]


def in_step(numbers: Iterable[int | None]) -> Counts:
    """`5, 6, 7, None, 9` as (5, 3), (None, 1), (9, 1)."""
    found: Counts = []
    for number in numbers:
        first, count = found[-1] if found else (None, 0)
        expected = None if first is None else first + count
        if count and number == expected:
            found[-1] = (first, count + 1)
        else:
            found.append((number, 1))
    return found
