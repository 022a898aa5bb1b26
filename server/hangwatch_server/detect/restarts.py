"""What outlives a restart: of the job, how its attempts ended; of the server, its limits.

A restart of the job clears what was learned of a stall and ends its incident. That it stands still
at the same place again, or comes no further, is evidence that one attempt alone cannot show.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hangwatch_server import ranges
from hangwatch_server.detect import words
from hangwatch_server.detect.memory import Ended, Memory
from hangwatch_server.model import Evidence, Finding, Kind, Limits, State, Verdict

_KEPT = 8
_HANGS = (State.HUNG, State.SUSPECTED, State.FAILED)
# As many calls again are progress; fewer are the same start once more.
_FURTHER = 1.1
_IN_A_ROW = 2


def next_attempt(memory: Memory, attempt: int, finding: Finding, state: State) -> Memory:
    """A fresh memory for the attempt after this one, which remembers how this one ended."""
    was_hung = (memory.stall is not None and memory.stall.is_hung) or state in _HANGS
    ended = Ended(
        attempt=attempt,
        was_hung=was_hung and finding.kind is not Kind.NONE,
        place=place(finding),
        where=in_words(finding),
        calls=memory.calls or None,
    )
    return Memory(attempts=(*memory.attempts, ended)[-_KEPT:])


def inherit(memory: Memory, limits: Limits, hangs: Iterable[Verdict]) -> Memory:
    """The memory of a server that has just started, with what the one before it had stored.

    `limits` are those that applied last; `hangs` the verdicts of incidents of earlier attempts.
    """
    known = {item.attempt: item for item in memory.attempts}
    for verdict in hangs:
        ended = Ended(
            attempt=verdict.attempt,
            was_hung=True,
            place=place(verdict),
            where=in_words(verdict),
        )
        known.setdefault(verdict.attempt, ended)
    attempts = tuple(known[attempt] for attempt in sorted(known))[-_KEPT:]
    is_known = limits.confirm_after_s > 0
    return replace(memory, inherited=limits if is_known else None, attempts=attempts)


def place(finding: Finding | Verdict) -> str:
    """Equal for stalls of the same kind, on the same group and call, by the same ranks.

    Without the sequence number: a restart from a checkpoint counts its calls anew.
    """
    if finding.kind in (Kind.NONE, Kind.NO_PROGRESS):
        return ""
    group = finding.group.name if finding.group is not None else ""
    return "|".join((finding.kind, group, finding.op, finding.culprit_ranks))


def in_words(finding: Finding | Verdict) -> str:
    """ "rank 3, all_reduce of dp", for a sentence about an earlier attempt."""
    named = finding.culprit_ranks
    parts = [ranges.named(ranges.parse(named))] if named else []
    if finding.group is not None:
        parts.append(f"{finding.op or 'a call'} of {words.group(finding.group.name)}")
    where = next((culprit.where for culprit in finding.culprits if culprit.where), "")
    return ", ".join([*parts, *([where] if where else [])])


def same_place(memory: Memory, finding: Finding) -> tuple[Ended, ...]:
    """The earlier attempts that stood still where this one does."""
    here = place(finding)
    return tuple(item for item in memory.attempts if here and item.was_hung and item.place == here)


def evidence(memory: Memory, finding: Finding) -> tuple[Evidence, ...]:
    """What the earlier attempts say of this stall; () where they say nothing."""
    told: list[Evidence] = []
    same = same_place(memory, finding)
    if same:
        numbers = _numbers(same)
        told.append(
            Evidence(
                kind="restarts",
                text=(
                    f"{numbers} stood still at the same place"
                    f"{f' ({same[-1].where})' if same[-1].where else ''}:"
                    " a restart alone has not helped."
                ),
            )
        )
    barren = _without_progress(memory)
    if barren and finding.kind is not Kind.NONE:
        told.append(
            Evidence(
                kind="restarts",
                text=(
                    f"{_numbers(barren)} came no further than {_furthest(barren)} calls,"
                    f" this one is at {memory.calls}: the job restarts without progress."
                ),
            )
        )
    return tuple(told)


def _without_progress(memory: Memory) -> tuple[Ended, ...]:
    """The newest attempts in a row that came no further than the one before them."""
    found: list[Ended] = []
    reach = memory.calls
    for item in reversed(memory.attempts):
        if item.calls is None or reach > _FURTHER * item.calls:
            break
        found.append(item)
        reach = min(reach, item.calls)
    return tuple(reversed(found)) if len(found) >= _IN_A_ROW else ()


def _furthest(attempts: tuple[Ended, ...]) -> int:
    return max(item.calls or 0 for item in attempts)


def _numbers(attempts: tuple[Ended, ...]) -> str:
    numbers = [str(item.attempt) for item in attempts]
    if len(numbers) == 1:
        return f"Attempt {numbers[0]}"
    return f"Attempts {', '.join(numbers[:-1])} and {numbers[-1]}"
