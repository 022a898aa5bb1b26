"""Packs the ranks of a job for the canvas grid: fixed order, runs instead of repeats.

Where the ranks are is sent once, how they look again on each change.

The grid's script is the only reader. Position is node (by its lowest rank) and local rank, so that
a rank never moves while it lives.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import msgspec

from hangwatch_server.model import Link, RankRow

STATE_LETTERS = {
    "healthy": "h",
    "waiting": "w",
    "culprit": "c",
    "silent": "s",
    "gone": "g",
    "unknown": "u",
    "finished": "f",
}
_NODE_CHARS = 40
_TEXT_CHARS = 120


Counts = list[tuple[int | None, int]]  # runs of numbers in step: the first, and how many


class Node(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    ranks: Counts


class Places(msgspec.Struct, frozen=True, kw_only=True):
    nodes: list[Node]
    pids: Counts


class Looks(msgspec.Struct, frozen=True, kw_only=True):
    """In the order in which `Places.nodes` list the ranks."""

    states: list[tuple[str, int]]  # runs of a letter, a capital one for a rank not heard lately
    texts: list[str]  # the distinct things that ranks do
    doing: list[tuple[int, int]]  # runs of (index into texts, how many ranks)


class Grid(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    looks: Looks
    places: Places | None = None  # None: where they were


class Changes:
    """Of one open stream: what of the grid its page has not got yet, encoded; "" for nothing."""

    def __init__(self) -> None:
        self._sent: Grid | None = None

    def of(self, grid: Grid) -> str:
        before, self._sent = self._sent, grid
        if before == grid:
            return ""
        is_placed = before is not None and before.places == grid.places
        return encode(Grid(looks=grid.looks) if is_placed else grid)


def pack(rows: Sequence[RankRow]) -> Grid:
    ordered = _ordered(rows)
    doing = [_doing(row) for row in ordered]
    texts = list(dict.fromkeys(doing))
    index = {text: number for number, text in enumerate(texts)}
    nodes = [
        Node(name=name[:_NODE_CHARS], ranks=in_step(row.rank for row in members))
        for name, members in groupby(ordered, key=lambda row: row.node)
    ]
    letters = groupby(ordered, key=_letter)
    return Grid(
        places=Places(nodes=nodes, pids=in_step(row.pid for row in ordered)),
        looks=Looks(
            states=[(letter, len(list(run))) for letter, run in letters],
            texts=texts,
            doing=[(index[text], len(list(run))) for text, run in groupby(doing)],
        ),
    )


def in_step(numbers: Iterable[int | None]) -> Counts:
    """`5, 6, 7, None, 9` as (5, 3), (None, 1), (9, 1)."""
    runs: Counts = []
    for number in numbers:
        first, count = runs[-1] if runs else (None, 0)
        expected = None if first is None else first + count
        if count and number == expected:
            runs[-1] = (first, count + 1)
        else:
            runs.append((number, 1))
    return runs


def encode(grid: Grid) -> str:
    return msgspec.json.encode(grid).decode()


def counts(rows: Iterable[RankRow]) -> list[tuple[str, int]]:
    """How many ranks are in each state, in the order of the legend; empty states left out."""
    found: dict[str, int] = {}
    for row in rows:
        found[row.state] = found.get(row.state, 0) + 1
    order = ("culprit", "gone", "silent", "unknown", "waiting", "healthy", "finished")
    return [(state, found[state]) for state in order if state in found]


def _ordered(rows: Sequence[RankRow]) -> list[RankRow]:
    lowest: dict[str, int] = {}
    for row in rows:
        lowest[row.node] = min(row.rank, lowest.get(row.node, row.rank))

    def place(row: RankRow) -> tuple[int, int, int]:
        local = row.local_rank if row.local_rank is not None else row.rank
        return lowest[row.node], local, row.rank

    return sorted(rows, key=place)


def _letter(row: RankRow) -> str:
    letter = STATE_LETTERS.get(row.state, "u")
    return letter if row.link is Link.LIVE else letter.upper()


def _doing(row: RankRow) -> str:
    text = row.waits_in or row.where or row.phase
    return f"in {text}"[:_TEXT_CHARS] if row.waits_in else text[:_TEXT_CHARS]
