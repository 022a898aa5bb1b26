"""Whether a server takes what a rank's record says: a frame with one beat over a limit is refused.

Then the whole node would not be heard. `ranks` cuts what can be cut; this looks at the result. The
server looks at everything itself, and a test holds both to the same limits.
"""

from __future__ import annotations

from collections.abc import Iterable

from hangwatch_agent import wire

MAX_CHILDREN = 1024


def problem(beat: wire.RankBeat) -> str:
    """What is over a limit in the beat of a rank, in words; "" if nothing is."""
    counts = (
        ("groups", len(beat.groups), wire.MAX_GROUPS_PER_RANK),
        ("open calls", len(beat.calls), wire.MAX_CALLS),
        ("peers", len(beat.p2p), wire.MAX_PEERS),
        ("children", len(beat.process.children), MAX_CHILDREN),
        ("entries of a group", max(map(_entries, beat.groups), default=0), wire.MAX_ENTRIES),
    )
    for what, count, limit in counts:
        if count > limit:
            return f"{count} {what} are over the limit of {limit}"
    texts = (beat.launch, beat.script, beat.phase, beat.process.exit_reason, *beat.lacks)
    if any(len(text) > wire.MAX_TEXT for text in texts):
        return f"a text is over the limit of {wire.MAX_TEXT} characters"
    if not all(age is None or -1.0 <= age <= wire.MAX_AGE_S for age in _ages(beat)):
        return "a duration is none"
    if any(group.counter < 0 or not _is_whole(group.tail) for group in beat.groups):
        return "a group's counter or entries contradict themselves"
    return ""


def _entries(group: wire.GroupBeat) -> int:
    tail = group.tail
    return max(len(group.entries), len(tail.calls) if tail else 0, len(tail.kinds) if tail else 0)


def _ages(beat: wire.RankBeat) -> Iterable[float | None]:
    yield from (beat.beat_age_s, beat.phase_s, beat.phase_limit_s)
    yield from (wait.age_s for wait in beat.waits)
    yield from (call.age_s for call in beat.calls)
    for group in beat.groups:
        yield group.stall_s
        yield group.entries_age_s


def _is_whole(tail: wire.Tail | None) -> bool:
    return tail is None or all(0 <= kind < len(tail.kinds) for _, kind in tail.calls)
