"""Who is further on in the program, by the stacks of ranks whose newest calls differ.

A record cannot tell a call left out just now from one of another kind: nothing comes after it. Two
stacks that part within one function can: a later line has passed the call of an earlier one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hangwatch_agent.wire import Frame
from hangwatch_server.diagnose.calls.signature import Vote
from hangwatch_server.diagnose.survey import Survey
from hangwatch_server.model import StackFacts

_MOST = 8  # stacks of the majority that are looked at


class Ahead(NamedTuple):
    """`rank` has passed the place of the others (`is_ahead`) or not yet come to it."""

    rank: int
    is_ahead: bool
    where: str
    others: str


def compare(survey: Survey, vote: Vote) -> Ahead | None:
    """Where the one odd rank stands against the majority; None when stacks do not say."""
    if vote.right is None or len(vote.odd) != 1:
        return None
    rank = vote.odd[0]
    mine = survey.stack(rank)
    theirs = _first_stack(survey, vote.by_signature.get(vote.right, ()))
    if mine is None or theirs is None:
        return None
    distance = _distance(mine.user_path, theirs.user_path)
    if not distance:
        return None
    return Ahead(rank, distance > 0, mine.where, theirs.where)


def _first_stack(survey: Survey, ranks: Iterable[int]) -> StackFacts | None:
    for rank in sorted(ranks)[:_MOST]:
        stack = survey.stack(rank)
        if stack is not None:
            return stack
    return None


def _distance(mine: Sequence[Frame], theirs: Sequence[Frame]) -> int:
    """Lines between the two where they part, 0 where that is not within one function."""
    for ours, other in zip(mine, theirs, strict=False):
        if (ours.name, ours.file) != (other.name, other.file):
            return 0
        if ours.line != other.line:
            return ours.line - other.line
    return 0
