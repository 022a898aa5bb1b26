"""Sorts what was read into jobs: two dumps of one rank, or two jobs at once, must not be mixed.

No file says of which job it is. Two dumps of one rank whose names differ in more than numbers are
taken for two jobs; two of the same name in other folders for an older and a newer one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hangwatch_server.offline.model import FileKind, Reading

_DIGITS = re.compile(r"\d+")


@dataclass(slots=True)
class Pile:
    """The files of one job, one dump for each rank; `stacks` in the order of their names."""

    name: str
    dumps: dict[int, Reading] = field(default_factory=dict)
    stacks: dict[int, list[Reading]] = field(default_factory=dict)
    ras: list[Reading] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Sorted:
    piles: list[Pile] = field(default_factory=list)
    why_unused: dict[int, str] = field(default_factory=dict)  # by id(): names may be the same

    def leave_out(self, item: Reading, why: str) -> None:
        self.why_unused[id(item)] = why


def sort(readings: Iterable[Reading]) -> Sorted:
    """Piles by job, and what belongs to none of them."""
    ordered = sorted(readings, key=lambda item: (_natural(item.name), item.size_bytes))
    result = Sorted()
    ranked = [item for item in ordered if item.kind in (FileKind.RECORDER, FileKind.STACKS)]
    for item in ranked:
        if item.rank is None:
            result.leave_out(
                item, "its name does not say which rank it is of: call it like trace_rank_5"
            )
    placed = [item for item in ranked if item.rank is not None]
    families = _families([item for item in placed if item.kind is FileKind.RECORDER])
    for name, members in families.items():
        result.piles.append(_pile(name, members, result))
    _add_stacks(result, [item for item in placed if item.kind is FileKind.STACKS])
    _add_ras(result, [item for item in ordered if item.kind is FileKind.RAS])
    return result


def family(name: str) -> str:
    """A name without its numbers: dumps of one job differ in nothing else."""
    base = name.replace("\\", "/").rsplit("/", 1)[-1]
    return _DIGITS.sub("", base)


def _families(dumps: Sequence[Reading]) -> dict[str, list[Reading]]:
    """All dumps as one job unless ranks collide between names of different make."""
    by_family: dict[str, list[Reading]] = {}
    for item in dumps:
        by_family.setdefault(family(item.name), []).append(item)
    seen: set[int] = set()
    collide = False
    for members in by_family.values():
        ranks = {item.rank for item in members if item.rank is not None}
        collide = collide or not seen.isdisjoint(ranks)
        seen |= ranks
    if collide:
        return {_title(name): members for name, members in by_family.items()}
    return (
        {_title(next(iter(by_family))) if len(by_family) == 1 else "job": list(dumps)}
        if dumps
        else {}
    )


def _title(family_name: str) -> str:
    stem = family_name.rsplit(".", 1)[0] if "." in family_name else family_name
    return re.sub(r"[_\-. ]*(rank)?[_\-. ]*$", "", stem, flags=re.IGNORECASE) or "job"


def _pile(name: str, members: Sequence[Reading], result: Sorted) -> Pile:
    pile = Pile(name)
    for item in members:
        assert item.rank is not None  # sort() has looked
        assert item.dump is not None  # of kind RECORDER
        other = pile.dumps.get(item.rank)
        if other is None or other.dump is None:
            pile.dumps[item.rank] = item
            continue
        older, newer = (
            (other, item) if item.dump.newest_ns >= other.dump.newest_ns else (item, other)
        )
        pile.dumps[item.rank] = newer
        result.leave_out(older, f"another dump of rank {item.rank} is newer: {newer.name[:120]}")
    return pile


def _add_stacks(result: Sorted, stacks: Sequence[Reading]) -> None:
    if stacks and not result.piles:
        result.piles.append(Pile(_title(family(stacks[0].name))))
    if len(result.piles) == 1:
        for item in stacks:
            assert item.rank is not None  # sort() has looked
            result.piles[0].stacks.setdefault(item.rank, []).append(item)
        return
    for item in stacks:
        result.leave_out(
            item,
            "the dumps are of several jobs, and nothing says which of them it belongs to: "
            "give one job at a time",
        )


def _add_ras(result: Sorted, answers: Sequence[Reading]) -> None:
    if answers and not result.piles:
        result.piles.append(Pile("job"))
    if len(result.piles) == 1:
        result.piles[0].ras.extend(answers)
        return
    for item in answers:
        result.leave_out(
            item, "the dumps are of several jobs, and RAS speaks of one: give one job at a time"
        )


def _natural(name: str) -> tuple[str | int, ...]:
    """`rank_2` before `rank_10`; every second part is a number, so that they compare."""
    return tuple(
        int(part) if index % 2 else part for index, part in enumerate(re.split(r"(\d{1,18})", name))
    )
