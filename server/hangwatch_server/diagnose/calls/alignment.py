"""Two sequences of calls, of which one has lost or gained a few: where, and how many.

Pure: it knows numbers and keys of calls, nothing of ranks or records. A call that was left out
shifts all later ones forward by one; the offset at which the rest fits again says how many.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

MOST = 4  # calls left out or added
LONGEST_PERIOD = 16
Key = TypeVar("Key")


class Place(NamedTuple):
    """`calls` were left out (above 0) or added (below 0) just at `seq`."""

    seq: int
    calls: int
    fits: int  # calls after it that agree


def align(
    mine: Mapping[int, Key], reference: Mapping[int, Key], *, foretells: bool = False
) -> Place | None:
    """How `mine` has shifted against `reference`, both by number; None when no one shift fits.

    With `foretells` a call that the others have not come to may differ from what their period
    says: only where somebody must be out of step, since any job comes to another part some time.

    1. The first number at which they differ is where it happened. 2. Of all offsets up to 4 either
    way, at which every later call agrees, the smallest is taken. 3. Two of the same size fit only
    where calls alternate: then the shorter sequence left one out, the longer added one, and of two
    of one length nobody can say.
    """
    known = _extended(reference)
    compared = known if foretells else reference
    both = sorted(seq for seq in mine if seq in compared)
    start = next((seq for seq in both if mine[seq] != compared[seq]), None)
    if start is None or start == both[0]:
        return None  # alike, or what happened is older than the record
    later = [seq for seq in both if seq > start]
    if later and all(mine[seq] == compared[seq] for seq in later):
        return None  # one different call, and back in step
    for size in range(1, MOST + 1):
        found = [
            Place(start, calls, fits)
            for calls in (size, -size)
            if (fits := _fits(mine, reference, known, start, calls)) is not None
        ]
        if len(found) == 1:
            return found[0]
        if found:
            ahead = max(mine) - max(reference)
            return next((one for one in found if one.calls * ahead < 0), None)
    return None


def period(calls: Mapping[int, Key]) -> int | None:
    """After how many calls they repeat, if the newest two rounds at least are there and alike."""
    seqs = sorted(calls)
    for length in range(1, min(LONGEST_PERIOD, len(seqs) // 2) + 1):
        compared = [seq for seq in seqs if seq - length in calls]
        if len(compared) >= length and all(calls[s] == calls[s - length] for s in compared):
            return length
    return None


def _fits(
    mine: Mapping[int, Key],
    reference: Mapping[int, Key],
    known: Mapping[int, Key],
    start: int,
    calls: int,
) -> int | None:
    """How many of my later calls agree at this offset; None if one does not, or none is known.

    What is only foretold is asked where nothing else is known: a job may go on to another part.
    """
    first = start if calls > 0 else start - calls
    later = [seq for seq in mine if seq >= first]
    for source in (reference, known):
        compared = [seq for seq in later if seq + calls in source]
        if compared:
            does_fit = all(mine[seq] == source[seq + calls] for seq in compared)
            return len(compared) if does_fit else None
    if calls > 0:
        return None
    # Nothing after the added ones: they must repeat what came just before.
    added = [seq for seq in mine if seq >= start]
    return 0 if added and all(mine[s] == known.get(s + calls) for s in added) else None


def _extended(reference: Mapping[int, Key]) -> Mapping[int, Key]:
    """The reference with the few next calls that its own period foretells."""
    length = period(reference)
    if length is None:
        return reference
    longer = dict(reference)
    newest = max(reference)
    for seq in range(newest + 1, newest + MOST + 1):
        if seq - length in longer:
            longer[seq] = longer[seq - length]
    return longer
