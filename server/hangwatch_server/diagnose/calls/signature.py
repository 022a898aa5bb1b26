"""What makes two calls at the same place of a group differ, and who is right by majority.

Sizes are compared as element counts, and only for operations where every member must give the same:
splits of all_to_all, and what gather, scatter and uneven reduce_scatter move, may differ lawfully.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from math import prod
from typing import NamedTuple

from hangwatch_agent.wire import Entry

_SAME_INPUT = frozenset({"allreduce", "broadcast", "reduce", "all_gather", "allgather"})
# With NCCL's own names: "_all_gather_base", "_reduce_scatter_base", "all_reduce_barrier". Uneven
# all_gather and reduce_scatter go by other names there ("_broadcast_oop", "_reduce_oop").
_SAME_INPUT_START = ("all_reduce", "_all_gather", "all_gather_into", "_reduce_scatter")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_ ]{0,63}")  # with a space: "broadcast from root 1"
_HUGE = 1 << 48  # elements


Shapes = tuple[tuple[int, ...], ...]


class Signature(NamedTuple):
    op: str
    size: int | None  # elements; None where members may differ
    dtype: str


class Vote(NamedTuple):
    """`right` is None on a tie; `odd` are the ranks of every other signature."""

    right: Signature | None
    odd: tuple[int, ...]
    by_signature: dict[Signature, tuple[int, ...]]


def of(entry: Entry) -> Signature:
    return _of(entry.op, entry.input_sizes, entry.input_dtypes)


def is_plausible(entry: Entry) -> bool:
    """Whether torch can have written it: a job may write into its record what it likes."""
    return _is_plausible(entry.op, entry.input_sizes)


@lru_cache(maxsize=1024)  # a job makes the same few calls over and over
def _of(op: str, sizes: Shapes, dtypes: tuple[str, ...]) -> Signature:
    has_size = op in _SAME_INPUT or op.startswith(_SAME_INPUT_START)
    size = sum(prod(shape) for shape in sizes) if has_size else None
    dtype = dtypes[0].lower() if has_size and dtypes else ""
    return Signature(op, size, dtype)


@lru_cache(maxsize=1024)
def _is_plausible(op: str, sizes: Shapes) -> bool:
    numbers = (size for shape in sizes for size in shape)
    return _NAME.fullmatch(op) is not None and all(0 <= size < _HUGE for size in numbers)


def vote(entries: Mapping[int, Entry]) -> Vote | None:
    """None when all agree. Entries without an op name (no recorder dump) and odd ones abstain."""
    ranks: dict[Signature, list[int]] = {}
    for rank in sorted(entries):
        if is_plausible(entries[rank]):
            ranks.setdefault(of(entries[rank]), []).append(rank)
    if len(ranks) < 2:
        return None
    sides = {signature: tuple(members) for signature, members in ranks.items()}
    counts = Counter({signature: len(members) for signature, members in sides.items()})
    leader, size = counts.most_common(1)[0]
    has_majority = 2 * size > sum(counts.values())
    return choose(sides, leader if has_majority else None)


def choose(sides: dict[Signature, tuple[int, ...]], right: Signature | None) -> Vote:
    odd = sorted(r for signature, members in sides.items() if signature != right for r in members)
    return Vote(right, tuple(odd), sides)


def text(entry: Entry) -> str:
    """The call as people read it: "all_reduce [4] float"."""
    shape = ", ".join(str(list(sizes)) for sizes in entry.input_sizes[:2])
    dtype = entry.input_dtypes[0].lower() if entry.input_dtypes else ""
    return " ".join(part for part in (entry.op, shape, dtype) if part)
