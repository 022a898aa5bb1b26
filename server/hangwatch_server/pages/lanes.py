"""The swimlane of the last collectives: a row for each class of ranks, a column for each call.

Layout only: which ranks made the same calls, and how far each came, the stored moment says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hangwatch_server.model import Lane, LaneCall

COLUMNS = 20
_CODES = {
    "all_reduce": "AR",
    "allreduce": "AR",
    "all_gather": "AG",
    "all_gather_into_tensor": "AG",
    "_all_gather_base": "AG",
    "reduce_scatter": "RS",
    "_reduce_scatter_base": "RS",
    "reduce_scatter_tensor": "RS",
    "all_to_all": "A2A",
    "alltoall_base": "A2A",
    "broadcast": "BC",
    "barrier": "BAR",
    "all_reduce_barrier": "BAR",
    "reduce": "RED",
    "gather": "GA",
    "scatter": "SC",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """`kind`: finished, inside, odd (another call than the rest), missing, later, unknown."""

    kind: str
    code: str
    text: str  # all of it, for hover and screen readers


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    ranks: str
    count: int
    cells: tuple[Cell, ...]
    note: str  # why a row has little to show; "" otherwise


@dataclass(frozen=True, slots=True, kw_only=True)
class Swimlane:
    """One group: its calls from left to right, oldest first."""

    group: str
    numbers: tuple[int, ...]
    rows: tuple[Row, ...]
    legend: tuple[tuple[str, str], ...]  # code, op


def of_lanes(lanes: Sequence[Lane], counts: Sequence[int]) -> tuple[Swimlane, ...]:
    """A swimlane per group in the order of `lanes`; `counts` are their ranks' numbers."""
    by_group: dict[str, list[tuple[Lane, int]]] = {}
    for lane, count in zip(lanes, counts, strict=True):
        by_group.setdefault(lane.gid, []).append((lane, count))
    made = (_swimlane(rows) for rows in by_group.values())
    return tuple(one for one in made if one is not None)


def code(op: str) -> str:
    """Two or three letters for a call: `AR` for all_reduce."""
    if op in _CODES:
        return _CODES[op]
    words = [word for word in op.replace("nccl:", "").split("_") if word]
    letters = "".join(word[0] for word in words) if len(words) > 1 else op[:2]
    return letters[:3].upper() or "?"


def _swimlane(lanes: list[tuple[Lane, int]]) -> Swimlane | None:
    newest = [lane.entered for lane, _ in lanes if lane.entered is not None]
    if not newest:
        return None
    last = max(newest)
    known = [call.seq for lane, _ in lanes for call in lane.calls]
    first = max(last - COLUMNS + 1, min(known, default=last))
    numbers = tuple(range(first, last + 1))
    usual = {number: _usual(lanes, number) for number in numbers}
    tied = frozenset(number for number in numbers if _is_tie(lanes, number))
    rows = tuple(_row(lane, count, numbers, usual, tied) for lane, count in lanes)
    ops = {call.op for lane, _ in lanes for call in lane.calls if call.seq >= first}
    legend = tuple(sorted({(code(op), op) for op in ops}))
    return Swimlane(group=lanes[0][0].group, numbers=numbers, rows=rows, legend=legend)


def _votes(lanes: list[tuple[Lane, int]], number: int) -> list[tuple[tuple[str, str], int]]:
    """The two calls that most ranks made there."""
    votes: Counter[tuple[str, str]] = Counter()
    for lane, count in lanes:
        for call in lane.calls:
            if call.seq == number:
                votes[call.op, call.shape] += count
    return votes.most_common(2)


def _is_tie(lanes: list[tuple[Lane, int]], number: int) -> bool:
    votes = _votes(lanes, number)
    return len(votes) > 1 and votes[0][1] == votes[1][1]


def _usual(lanes: list[tuple[Lane, int]], number: int) -> tuple[str, str] | None:
    """What more ranks than any other called there; None where nobody's record reaches."""
    votes = _votes(lanes, number)
    return votes[0][0] if votes and not _is_tie(lanes, number) else None


def _row(
    lane: Lane,
    count: int,
    numbers: Sequence[int],
    usual: dict[int, tuple[str, str] | None],
    tied: frozenset[int],
) -> Row:
    calls = {call.seq: call for call in lane.calls}
    differing = {number for number in numbers if _differs(calls.get(number), usual[number])} | tied
    cells = tuple(
        _cell(lane, number, calls.get(number), number in differing, usual[number])
        for number in numbers
    )
    note = ""
    if not lane.calls:
        note = (
            "nothing is known of its calls here"
            if lane.entered is None
            else f"its calls are not recorded; it has entered #{lane.entered}"
        )
    return Row(ranks=lane.ranks, count=count, cells=cells, note=note)


def _differs(call: LaneCall | None, usual: tuple[str, str] | None) -> bool:
    return call is not None and usual is not None and (call.op, call.shape) != usual


def _cell(
    lane: Lane,
    number: int,
    call: LaneCall | None,
    is_odd: bool,
    usual: tuple[str, str] | None,
) -> Cell:
    if call is not None:
        what = " ".join(part for part in (call.op, call.shape) if part)
        place = f" at {call.site}" if call.site else ""
        state = "finished" if call.is_finished else "entered, not finished"
        kind = "odd" if is_odd else "finished" if call.is_finished else "inside"
        tail = ", another call than the rest" if is_odd else ""
        return Cell(kind=kind, code=code(call.op), text=f"#{number} {what}{place}: {state}{tail}")
    if lane.entered is None:
        return Cell(kind="unknown", code="", text=f"#{number}: not known")
    if number <= lane.entered:
        return Cell(kind="unknown", code="", text=f"#{number}: entered, not recorded")
    expected = f" {usual[0]}" if usual is not None else ""
    if number == lane.entered + 1:
        return Cell(
            kind="missing",
            code=code(usual[0]) if usual else "",
            text=f"#{number}{expected}: never entered",
        )
    return Cell(kind="later", code="", text=f"#{number}{expected}: not reached")
