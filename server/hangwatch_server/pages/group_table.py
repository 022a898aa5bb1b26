"""Which groups the table of a job lists one by one, and which are one line for many.

Those that wait are always listed, longest first. Of what is calm, many alike are folded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hangwatch_server.model import Family, GroupRow
from hangwatch_server.pages import words

MOST_ROWS = 100
FOLD_FROM = 9  # calm groups of one family; fewer are listed one by one


@dataclass(frozen=True, slots=True)
class Table:
    rows: tuple[GroupRow, ...]
    folds: tuple[Family, ...]
    total: int
    left_out: int  # neither listed nor folded


def of(groups: Sequence[GroupRow], families: Sequence[Family], opened: str) -> Table:
    """The table; the groups of the family `opened` are listed, as far as there is room."""
    folds = tuple(
        one for one in families if one.count - one.stalled >= FOLD_FROM and one.name != opened
    )
    folded = {(one.name, one.size) for one in folds}
    listed = [row for row in groups if row.waiting or (row.family, row.size) not in folded]
    return Table(tuple(listed[:MOST_ROWS]), folds, len(groups), max(0, len(listed) - MOST_ROWS))


def fold_text(family: Family) -> str:
    """`64 dp groups of 8, all at #1042`."""
    calm = family.count - family.stalled
    name = f"{words.short(words.plain(family.name), 40)} " if family.name else ""
    more = " more" if family.stalled else ""
    return f"{calm:,}{more} {name}groups of {family.size:,}"


def places_text(family: Family) -> str:
    if family.at_most is None:
        return "no call yet"
    if family.at_least == family.at_most:
        return f"all at #{family.at_most}"
    return f"#{family.at_least} to #{family.at_most}"
