"""Whether a culprit has left training while others still train: the mark of uneven inputs.

Read from two stacks: in the innermost function that both are in, the culprit stands at a later line
than the rank that waits, so the loop that the other is still in lies behind it. A rank late in the
body of that same loop looks alike: the culprit's detail says so.
"""

from __future__ import annotations

from collections.abc import Iterable

from hangwatch_agent.wire import Frame, ProcessFacts
from hangwatch_server.diagnose import survey
from hangwatch_server.model import StackFacts


def has_left(stack: StackFacts, facts: ProcessFacts, waiting: Iterable[StackFacts]) -> bool:
    """`waiting` are stacks of ranks that wait for this one; only those inside DDP count."""
    if survey.waits_in_ddp(stack) or not _is_asleep(facts):
        return False
    return any(
        survey.waits_in_ddp(other) and _is_past(stack.user_path, other.user_path)
        for other in waiting
    )


def _is_past(path: tuple[Frame, ...], other: tuple[Frame, ...]) -> bool:
    for mine, theirs in zip(path, other, strict=False):
        if (mine.file, mine.name) != (theirs.file, theirs.name):
            break
        if mine.line != theirs.line:
            return mine.line > theirs.line
    # Every shared frame stands at the same line: what follows is one call each, in no known order.
    return False


def _is_asleep(facts: ProcessFacts) -> bool:
    """Nothing shows that it waits for data: asleep by a timer, or the kernel does not say where."""
    return facts.wchan in ("", "0") or "sleep" in facts.wchan or "pause" in facts.wchan
