"""Calls that a rank left out or made once too often, some calls ago: found by aligning records.

Such a call can finish unnoticed, when the next one fits in its place. From then on the rank is out
of step, and the hang comes later and elsewhere. What is older than the record has no place.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping

from hangwatch_agent.wire import Entry
from hangwatch_server.diagnose.calls import alignment, record, siblings, signature
from hangwatch_server.diagnose.pending.ops import Form, PendingOp
from hangwatch_server.diagnose.survey import Survey
from hangwatch_server.model import Shift

MOST_VOTERS = 64  # members whose records make the reference
MOST_CANDIDATES = 8
Record = Mapping[int, Entry]
Key = tuple[object, ...]


def of(
    survey: Survey, op: PendingOp, candidates: Iterable[int], *, foretells: bool = False
) -> Shift | None:
    """The first of `candidates` that is out of step with the other members of the operation.

    `foretells` as in `alignment.align`.
    """
    group = survey.snapshot.groups.get(op.gid)
    if op.form is not Form.COLLECTIVE or group is None:
        return None
    asked = sorted(set(candidates).intersection(group.ranks))[:MOST_CANDIDATES]
    voters = _spread([rank for rank in group.ranks if rank not in asked], MOST_VOTERS)
    records = {rank: _numbered(survey, rank, op.gid) for rank in (*asked, *voters)}
    others = [_numbered(survey, r, gid) for r, gid in _of_siblings(survey, op)]
    are_sited = any(e.site for calls in (*records.values(), *others) for e in calls.values())
    for has_sites in (True, False) if are_sited else (False,):
        for rank in asked:
            peers = [calls for other, calls in records.items() if other != rank]
            found = _shift(rank, records[rank], [*peers, *others], has_sites, foretells)
            if found is not None:
                return found
    return None


def _shift(
    rank: int, mine: Record, others: list[Record], has_sites: bool, foretells: bool
) -> Shift | None:
    known = _majority(others, has_sites)
    own = {seq: _key(entry, has_sites) for seq, entry in mine.items()}
    reference = {seq: key for seq, (key, _) in known.items()}
    is_alone = sum(1 for calls in others if calls) < 2
    if is_alone and (not alignment.period(reference) or alignment.period(own)):
        return None  # of two ranks only one that breaks its own rhythm can be told
    place = alignment.align(own, reference, foretells=foretells)
    if place is None:
        return None
    example = known[place.seq][1] if place.calls > 0 else mine[place.seq]
    return Shift(
        rank=rank,
        calls=place.calls,
        op=example.op,
        ago=sum(1 for seq in mine if seq >= place.seq),
        where=example.site,
    )


def _majority(records: list[Record], has_sites: bool) -> dict[int, tuple[Key, Entry]]:
    """What more than half of those that know a place called there, with one such call."""
    by_seq: dict[int, list[Entry]] = {}
    for calls in records:
        for seq, entry in calls.items():
            by_seq.setdefault(seq, []).append(entry)
    found: dict[int, tuple[Key, Entry]] = {}
    for seq, entries in by_seq.items():
        keys = Counter(_key(entry, has_sites) for entry in entries)
        key, number = keys.most_common(1)[0]
        if 2 * number > len(entries):
            found[seq] = key, next(one for one in entries if _key(one, has_sites) == key)
    return found


def _key(entry: Entry, has_sites: bool) -> Key:
    return (*signature.of(entry), entry.site if has_sites else "")


def _numbered(survey: Survey, rank: int, gid: str) -> Record:
    return {
        entry.seq: entry for entry in record.of(survey, rank, gid) if signature.is_plausible(entry)
    }


def _of_siblings(survey: Survey, op: PendingOp) -> list[tuple[int, str]]:
    """Members of sibling groups, one of each, for groups too small to have a majority."""
    group = survey.snapshot.groups[op.gid]
    if len(group.ranks) > 3:
        return []
    chosen = itertools.islice(siblings.of(survey, group), siblings.MOST)
    return [(one.ranks[0], one.gid) for one in chosen]


def _spread(ranks: list[int], most: int) -> list[int]:
    """At most `most` of them, evenly over all."""
    step = max(1, -(-len(ranks) // most))
    return ranks[::step]
