"""Packs the ranks of a job for the canvas grid: fixed order, runs instead of repeats.

The grid's script is the only reader. Position is node (by its lowest rank) and local rank, so that
a rank never moves while it lives.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import msgspec

from hangwatch_server.model import RankRow

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


class Node(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    ranks: list[int]


class Grid(msgspec.Struct, frozen=True, kw_only=True):
    """`states`, `texts` and `pids` follow the order in which `nodes` list their ranks."""

    nodes: list[Node]
    states: str  # one letter for each rank
    pids: list[int | None]
    texts: list[str]  # the distinct things that ranks do
    doing: list[tuple[int, int]]  # runs of (index into texts, how many ranks)


def pack(rows: Sequence[RankRow]) -> Grid:
    ordered = _ordered(rows)
    doing = [_doing(row) for row in ordered]
    texts = list(dict.fromkeys(doing))
    index = {text: number for number, text in enumerate(texts)}
    return Grid(
        nodes=[
            Node(name=name[:_NODE_CHARS], ranks=[row.rank for row in members])
            for name, members in groupby(ordered, key=lambda row: row.node)
        ],
        states="".join(STATE_LETTERS.get(row.state, "u") for row in ordered),
        pids=[row.pid for row in ordered],
        texts=texts,
        doing=[(index[text], len(list(run))) for text, run in groupby(doing)],
    )


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


def _doing(row: RankRow) -> str:
    text = row.waits_in or row.where or row.phase
    return f"in {text}"[:_TEXT_CHARS] if row.waits_in else text[:_TEXT_CHARS]
