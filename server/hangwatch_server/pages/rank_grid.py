"""Packs the ranks of a job for the canvas grid: fixed order, runs instead of repeats.

Where the ranks are is sent once, how they look again on each change.

The grid's script is the only reader. Position is node (by its lowest rank) and local rank, so that
a rank never moves while it lives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

import msgspec

from hangwatch_server.model import Lag, Link, RankRow
from hangwatch_server.pages import runs, words
from hangwatch_server.pages.colouring import By, Colouring, age_step

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
MOST_TEXTS = 8192  # the table has the others: a job can make each of its ranks do something else


class Node(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    ranks: runs.Counts


class Places(msgspec.Struct, frozen=True, kw_only=True):
    nodes: list[Node]
    pids: runs.Counts


Runs = list[tuple[int, int]]  # a number, and for how many ranks in a row


class Colours(msgspec.Struct, frozen=True, kw_only=True):
    classes: list[tuple[str, str, str, int]]  # word, tone, mark, 1 for one drawn small
    of: Runs  # places in classes


class Looks(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """In the order in which `Places.nodes` list the ranks."""

    states: list[tuple[str, int]]  # runs of a letter, a capital one for a rank not heard lately
    texts: list[str]  # the distinct things that ranks do
    doing: Runs  # places in texts
    ages: Runs  # how many of colouring.AGES_S have passed since the last beat
    colours: Colours | None = None  # None: by their states
    lags: list[tuple[int | None, int | None, int]] | None = None  # runs of (lag, seq)
    chosen: Runs | None = None  # 1 for a rank that the filter names; None without a filter


class Grid(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    looks: Looks
    places: Places | None = None  # None: where they were


def pack(
    rows: Sequence[RankRow],
    colouring: Colouring | None = None,
    lags: Mapping[int, Lag] | None = None,
    chosen: frozenset[int] | None = None,
) -> Grid:
    """The grid of these rows; `colouring` is in their order."""
    class_of = dict(zip((row.rank for row in rows), colouring.of, strict=True)) if colouring else {}
    ordered = ordered_rows(rows)
    doing = [_doing(row) for row in ordered]
    texts = _distinct(doing)
    index = {text: number for number, text in enumerate(texts)}
    nodes = [
        Node(name=words.plain(name[:_NODE_CHARS]), ranks=runs.in_step(row.rank for row in members))
        for name, members in groupby(ordered, key=lambda row: row.node)
    ]
    return Grid(
        places=Places(nodes=nodes, pids=runs.in_step(row.pid for row in ordered)),
        looks=Looks(
            states=runs.of(_letter(row) for row in ordered),
            texts=[words.plain(text) for text in texts],
            doing=runs.of(index.get(text, MOST_TEXTS) for text in doing),
            ages=runs.of(age_step(row.age_s) for row in ordered),
            colours=_colours(ordered, colouring, class_of) if colouring else None,
            lags=_lag_runs(ordered, lags) if lags else None,
            chosen=None if chosen is None else runs.of(int(row.rank in chosen) for row in ordered),
        ),
    )


def _distinct(texts: Iterable[str]) -> list[str]:
    """The first MOST_TEXTS of them, and "" for all further ones."""
    found = list(dict.fromkeys(texts))
    return found if len(found) <= MOST_TEXTS else [*found[:MOST_TEXTS], ""]


def _colours(
    ordered: Sequence[RankRow], colouring: Colouring, class_of: Mapping[int, int]
) -> Colours | None:
    """None where the states say it, which travel anyway."""
    if colouring.by is By.STATE:
        return None
    return Colours(
        classes=[(one.word, one.tone, one.mark, int(one.is_quiet)) for one in colouring.classes],
        of=runs.of(class_of[row.rank] for row in ordered),
    )


def _lag_runs(
    ordered: Sequence[RankRow], lags: Mapping[int, Lag]
) -> list[tuple[int | None, int | None, int]]:
    """Runs of how far behind and where; (None, None) for a rank that nothing is known of."""
    found = (lags.get(row.rank) for row in ordered)
    pairs = ((None, None) if lag is None else (lag.lag, lag.seq) for lag in found)
    return [(lag, seq, count) for (lag, seq), count in runs.of(pairs)]


def ordered_rows(rows: Sequence[RankRow]) -> list[RankRow]:
    """By node, nodes by their lowest rank, and local rank: the order in which all is packed."""
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
