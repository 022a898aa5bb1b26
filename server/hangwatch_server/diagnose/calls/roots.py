"""Roots of rooted collectives: who names another root than the rest.

gloo's recorder does not keep the root, the wrapped calls do: of a call in flight, and with newer
probes of finished ones too. That a receiver's root has left the call is proof by itself: a root
that had served this receiver would not have left it waiting.
"""

from __future__ import annotations

from hangwatch_agent.wire import Entry
from hangwatch_server import op_names
from hangwatch_server.diagnose.calls import record, signature
from hangwatch_server.diagnose.calls.signature import Signature, Vote
from hangwatch_server.diagnose.pending import blind
from hangwatch_server.diagnose.pending.ops import PendingOp
from hangwatch_server.diagnose.survey import Survey


def vote(survey: Survey, op: PendingOp) -> Vote | None:
    """The vote on the root among all members whose root is known, None when they agree."""
    named = _named(survey, op)
    if not named:
        return None
    found = signature.vote(
        {
            rank: Entry(seq=op.seq or 0, op=f"{op.op} from root {root}", is_retired=False)
            for rank, root in named.items()
        }
    )
    return found if found is not None else _left_alone(survey, op, named)


def _named(survey: Survey, op: PendingOp) -> dict[int, int]:
    """The root that each member names."""
    if op.op not in op_names.ROOTED or op.seq is None:
        return {}
    named = {
        rank: entry.root
        for rank, entry in record.at(survey, op.gid, op.seq).items()
        if entry.op == op.op and entry.root is not None
    }
    for rank in op.have:
        beat = survey.beat(rank)
        for call in beat.calls if beat is not None else ():
            if call.gid == op.gid and call.op == op.op and call.root is not None:
                named[rank] = call.root
    return named


def _left_alone(survey: Survey, op: PendingOp, named: dict[int, int]) -> Vote | None:
    """Receivers whose root has finished this call without them: it was nobody's root for them."""
    if op.op not in op_names.ROOT_SENDS or op.seq is None:
        return None
    if op.absent or op.holding:
        return None  # a receiver hands on what it got: it waits for these though its root is done
    held = survey.standings.get(op.gid, {})
    gone = {rank for rank, one in held.items() if rank not in op.have and one.completed >= op.seq}
    # What a receiver has finished its root has sent, though its agent be lost and not it.
    gone |= {root for root in op.unknown if len(gone) > 1 and blind.is_blind(survey, root)}
    odd = tuple(sorted(r for r, root in named.items() if r in op.have and root in gone - {r}))
    if not odd or len(odd) > len(gone):
        return None  # more left waiting than served: a network that failed looks like that
    wrong = Signature(f"{op.op} from root {named[odd[0]]}", None, "")
    right = Signature(f"{op.op} from another root", None, "")
    return Vote(right, odd, {right: tuple(sorted(gone)), wrong: odd})
