"""Rows of the table of sends and receives: what pairs of ranks have exchanged, and what is open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hangwatch_server.model import OpenCall, Pair, PairSide
from hangwatch_server.pages import words

_MAX_CALLS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """One side's number of calls; `lacking` of them are there on the other side alone."""

    text: str
    lacking: int
    is_known: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    sender: int | None
    receiver: int
    group: str
    sends: Count
    receives: Count
    calls: tuple[str, ...]  # those that have not finished, in words
    more: int  # beyond those


def of_pairs(pairs: Sequence[Pair]) -> tuple[Row, ...]:
    return tuple(_row(pair) for pair in pairs)


def _row(pair: Pair) -> Row:
    sent, received = _posted(pair.sends), _posted(pair.receives)
    is_known = pair.sender is not None and sent is not None and received is not None
    both = max(sent or 0, received or 0)
    return Row(
        sender=pair.sender,
        receiver=pair.receiver,
        group=words.group(pair.group, "") if pair.group else "",
        sends=_count(pair.sends, both - (sent or 0) if is_known else 0),
        receives=_count(pair.receives, both - (received or 0) if is_known else 0),
        calls=tuple(_call(call) for call in pair.calls[:_MAX_CALLS]),
        more=max(0, len(pair.calls) - _MAX_CALLS),
    )


def _posted(side: PairSide | None) -> int | None:
    return None if side is None else side.posted


def _count(side: PairSide | None, lacking: int) -> Count:
    if side is None:
        return Count(text="not known", lacking=0, is_known=False)
    return Count(text=f"{side.posted:,}", lacking=lacking, is_known=True)


def _call(call: OpenCall) -> str:
    """`rank 2 waits in recv #41 (tag 7) for 41 s at stage.py:31`."""
    doing = "waits in" if call.is_blocking else "has begun"
    number = "" if call.number is None else f" #{call.number}"
    tag = f" (tag {call.tag})" if call.tag else ""
    site = f" at {call.site}" if call.site else ""
    op = "send" if call.is_send else "recv"
    return f"rank {call.rank} {doing} {op}{number}{tag} for {words.duration(call.waits_s)}{site}"
