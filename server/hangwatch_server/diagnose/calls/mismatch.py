"""Mismatches: members that made different calls at the same place of a group.

Majority decides who is wrong; on a tie the sibling groups vote at the same place; if they cannot,
both sides are named. Calls that a member has finished already count too: on gloo a mismatched
broadcast can complete on its root by luck. No rank is right for being the first.
"""

from __future__ import annotations

from hangwatch_agent.wire import Entry
from hangwatch_server import op_names
from hangwatch_server.diagnose.calls import record, roots, shift, siblings, signature
from hangwatch_server.diagnose.calls.signature import Signature, Vote
from hangwatch_server.diagnose.pending.ops import Form, PendingOp
from hangwatch_server.diagnose.survey import Survey


def mark(survey: Survey, pending: list[PendingOp]) -> dict[int, Vote]:
    """Set `is_mismatch` where members differ; return the votes by index into `pending`."""
    votes: dict[int, Vote] = {}
    for index, op in enumerate(pending):
        if _is_beyond_doubt(op) or op.form is not Form.COLLECTIVE or op.seq is None:
            continue
        found = _vote(survey, op)
        if found is not None:
            op.is_mismatch = True
            votes[index] = found
    return votes


def _is_beyond_doubt(op: PendingOp) -> bool:
    """Whether nothing can differ: no root is named, and nobody waits where several never came."""
    if not op.is_agreed or op.op in op_names.ROOTED:
        return False
    return len(op.have) > 1 or len(op.absent) < 2


def first_divergence(survey: Survey, op: PendingOp) -> tuple[int, Vote] | None:
    """The oldest recorded place of this group, before `op`, at which members' calls differ."""
    calls: dict[int, dict[int, Entry]] = {}
    for rank in survey.standings.get(op.gid, {}):
        for entry in record.of(survey, rank, op.gid):
            if op.seq is not None and entry.seq < op.seq:
                calls.setdefault(entry.seq, {})[rank] = entry
    for seq in sorted(calls):
        found = signature.vote(calls[seq])
        if found is not None:
            return seq, found
    return None


def _vote(survey: Survey, op: PendingOp) -> Vote | None:
    if _agree(survey, op):
        return roots.vote(survey, op) or _made_too_many(survey, op)
    assert op.seq is not None  # checked by the caller
    waiting = {rank: entry for rank, entry in op.have.items() if entry is not None}
    everyone = {**record.at(survey, op.gid, op.seq), **waiting}
    found = signature.vote(everyone)
    if found is None:
        return roots.vote(survey, op) or _made_too_many(survey, op)
    if found.right is None:
        group = survey.snapshot.groups[op.gid]
        right = siblings.choice(survey, group, op.seq, found.by_signature)
        if right is not None:
            return signature.choose(found.by_signature, right)
    return found


def _made_too_many(survey: Survey, op: PendingOp) -> Vote | None:
    """One that waits where nobody else comes, and whose record shows the call it made in excess."""
    if len(op.have) != 1 or len(op.absent) < 2:
        return None
    found = shift.of(survey, op, op.have)
    if found is None or found.calls > 0:
        return None
    entry = op.have[found.rank]
    own = signature.of(entry) if entry is not None else Signature(op.op, None, "")
    nothing = Signature("no call", None, "")
    return Vote(nothing, (found.rank,), {nothing: op.absent, own: (found.rank,)})


def _agree(survey: Survey, op: PendingOp) -> bool:
    """Whether all members that have come are known to have made the same call."""
    if op.is_agreed:
        return True
    group = survey.snapshot.groups.get(op.gid)
    if group is not None and len(op.have) + len(op.absent) + len(op.unknown) < len(group.ranks):
        return False
    entries = iter(op.have.values())
    first = next(entries)
    if first is None:
        return False
    name, sizes, dtypes = first.op, first.input_sizes, first.input_dtypes
    for entry in entries:
        if entry is None or entry.op != name:
            return False
        if entry.input_sizes != sizes or entry.input_dtypes != dtypes:
            return False
    return True
