"""Mismatches: members that made different calls at the same place of a group.

Majority decides who is wrong; on a tie the sibling groups (same size, same name but for its number)
vote at the same place; if they cannot, both sides are named. Calls that a member has finished
already count too: on gloo a mismatched broadcast can complete on its root by luck.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hangwatch_agent.wire import Entry
from hangwatch_server.diagnose.calls import signature
from hangwatch_server.diagnose.calls.signature import Vote
from hangwatch_server.diagnose.pending.ops import Form, PendingOp
from hangwatch_server.diagnose.survey import Survey
from hangwatch_server.model import GroupView

_NUMBER = re.compile(r"\d+")


def mark(survey: Survey, pending: list[PendingOp]) -> dict[int, Vote]:
    """Set `is_mismatch` where members differ; return the votes by index into `pending`."""
    votes: dict[int, Vote] = {}
    for index, op in enumerate(pending):
        if op.form is not Form.COLLECTIVE or op.seq is None:
            continue
        found = _vote(survey, op)
        if found is not None:
            op.is_mismatch = True
            votes[index] = found
    return votes


def entries_at(survey: Survey, gid: str, seq: int) -> dict[int, Entry]:
    """Every member's recorder entry at this place, finished or not."""
    found: dict[int, Entry] = {}
    for rank in survey.standings.get(gid, {}):
        for entry in entries_of(survey, rank, gid):
            if entry.seq == seq:
                found[rank] = entry
    return found


def entries_of(survey: Survey, rank: int, gid: str) -> tuple[Entry, ...]:
    held = survey.standings.get(gid, {}).get(rank)
    return held.group.entries if held is not None else ()


def first_divergence(survey: Survey, op: PendingOp) -> tuple[int, Vote] | None:
    """The oldest recorded place of this group, before `op`, at which members' calls differ."""
    calls: dict[int, dict[int, Entry]] = {}
    for rank in survey.standings.get(op.gid, {}):
        for entry in entries_of(survey, rank, op.gid):
            if op.seq is not None and entry.seq < op.seq:
                calls.setdefault(entry.seq, {})[rank] = entry
    for seq in sorted(calls):
        found = signature.vote(calls[seq])
        if found is not None:
            return seq, found
    return None


def _vote(survey: Survey, op: PendingOp) -> Vote | None:
    waiting = {rank: entry for rank, entry in op.have.items() if entry is not None}
    if _all_alike(waiting) and len(waiting) + len(op.absent) + len(op.unknown) >= _size(survey, op):
        return _root_vote(survey, op, waiting)
    assert op.seq is not None  # checked by the caller
    everyone = {**entries_at(survey, op.gid, op.seq), **waiting}
    found = signature.vote(everyone)
    if found is None:
        return _root_vote(survey, op, waiting)
    if found.right is None:
        found = _ask_siblings(survey, op, found)
    return found


def _size(survey: Survey, op: PendingOp) -> int:
    group = survey.snapshot.groups.get(op.gid)
    return len(group.ranks) if group is not None else 0


def _all_alike(entries: dict[int, Entry]) -> bool:
    first: Entry | None = None
    for entry in entries.values():
        if first is None:
            first = entry
        elif (
            entry.op != first.op
            or entry.input_sizes != first.input_sizes
            or entry.input_dtypes != first.input_dtypes
        ):
            return False
    return True


def _root_vote(survey: Survey, op: PendingOp, waiting: dict[int, Entry]) -> Vote | None:
    """Same call, different root: only the wrapped calls know the root."""
    roots: dict[int, Entry] = {}
    for rank in waiting:
        beat = survey.beat(rank)
        for call in beat.calls if beat is not None else ():
            if call.gid == op.gid and call.op == op.op and call.root is not None:
                name = f"{call.op} from root {call.root}"
                roots[rank] = Entry(seq=op.seq or 0, op=name, is_retired=False)
    return signature.vote(roots) if len(roots) > 1 else None


def _ask_siblings(survey: Survey, op: PendingOp, tie: Vote) -> Vote:
    group = survey.snapshot.groups[op.gid]
    assert op.seq is not None  # only collectives come here
    for sibling in _siblings(survey, group):
        calls = entries_at(survey, sibling.gid, op.seq)
        signatures = {signature.of(entry) for entry in calls.values()}
        agreed = signatures & set(tie.by_signature)
        if len(signatures) == 1 and agreed:
            return signature.choose(tie.by_signature, agreed.pop())
    return tie


def _siblings(survey: Survey, group: GroupView) -> Iterator[GroupView]:
    stem = _stem(group)
    for other in survey.snapshot.groups.values():
        if other.gid != group.gid and len(other.ranks) == len(group.ranks) and stem:
            is_alike = _stem(other) == stem and other.epoch == group.epoch
            if is_alike and not set(other.ranks) & set(group.ranks):
                yield other


def _stem(group: GroupView) -> str:
    """The name without its numbers; "" for names that torch made up."""
    name = group.description if group.description not in ("", "undefined") else group.name
    return _NUMBER.sub("", name)
