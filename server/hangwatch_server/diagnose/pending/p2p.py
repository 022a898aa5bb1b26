"""Pending sends and receives: the k-th send from a to b needs the k-th receive at b from a.

gloo's recorder does not see them; they come from the wrapped calls and their counts. On gloo a
small send finishes without its receive, so an unmatched send shows only when it is large.
"""

from __future__ import annotations

from hangwatch_agent.wire import Call, RankBeat
from hangwatch_server.diagnose import standing
from hangwatch_server.diagnose.pending.ops import Form, PendingOp
from hangwatch_server.diagnose.process import Fate
from hangwatch_server.diagnose.survey import Survey

ANY_PEER = -1  # the peer of receives from any rank, in the probe's counts
_OPS = frozenset({"send", "recv", "recv_any"})


def pending(survey: Survey) -> list[PendingOp]:
    found: list[PendingOp] = []
    for rank, view in survey.snapshot.ranks.items():
        if view.beat is None or not view.beat.calls:
            continue
        for call in view.beat.calls:
            age_s = call.age_s + view.age_s
            is_stable = age_s >= survey.settings.stable_after_s
            if call.op in _OPS and is_stable and _is_possible(survey, rank, call):
                found.append(_op(survey, rank, call, age_s))
    return found


def _is_possible(survey: Survey, rank: int, call: Call) -> bool:
    peer = call.peer
    return peer is None or (peer != rank and 0 <= peer < survey.snapshot.world_size)


def is_matched(beat: RankBeat, own: RankBeat, call: Call) -> bool | None:
    """Whether the peer posted the other half; None when the reports cannot say.

    A receive from any rank takes a send without saying whose: it may be the other half of a send,
    or have taken one that a later receive from this peer is counted against.
    """
    if _is_at_another_tag(beat, own.rank, call):
        return False
    is_receive = call.op == "recv"
    posted = _posted(beat, call.gid, own.rank, is_send=is_receive)
    if call.seq is None:
        return False if not posted and standing.has_probe(beat) else None
    if 0 < _posted(own, call.gid, beat.rank, is_send=not is_receive) < call.seq:
        return None  # in a call that it never posted, by its own count: neither proves anything
    if is_receive:
        taken = _posted(own, call.gid, ANY_PEER, is_send=False)
        if call.seq <= posted < call.seq + taken:
            return None
    elif posted < call.seq <= posted + _posted(beat, call.gid, ANY_PEER, is_send=False):
        return None
    if posted >= call.seq:
        return True
    return False if standing.has_probe(beat) else None


def _posted(beat: RankBeat, gid: str, peer: int, *, is_send: bool) -> int:
    for count in beat.p2p:
        if count.gid == gid and count.peer == peer and count.is_send == is_send:
            return count.posted
    return 0


def _is_at_another_tag(beat: RankBeat, waiter: int, call: Call) -> bool:
    """Whether the peer is in the other half of such a message, but of none with this tag."""
    other_half = "send" if call.op == "recv" else "recv"
    tags = {
        own.tag
        for own in beat.calls
        if (own.op, own.peer, own.gid) == (other_half, waiter, call.gid)
    }
    return bool(tags) and None not in tags and call.tag is not None and call.tag not in tags


def _op(survey: Survey, rank: int, call: Call, age_s: float) -> PendingOp:
    op = PendingOp(
        form=Form.P2P,
        op=call.op,
        gid=call.gid,
        seq=call.seq,
        have={rank: None},
        peer=call.peer,
        stalled_s=age_s,
    )
    if call.peer is None:
        group = survey.snapshot.groups.get(call.gid)
        op.unknown = tuple(m for m in (group.ranks if group else ()) if m != rank)
        return op
    fate = survey.fate(call.peer)
    beat = survey.beat(call.peer)
    own = survey.beat(rank)
    matched = is_matched(beat, own, call) if beat is not None and own is not None else None
    if fate in (Fate.GONE, Fate.STOPPED):
        op.holding = (call.peer,)
    elif matched is False and fate in (Fate.ALIVE, Fate.HELD):
        op.absent = (call.peer,)
    elif not matched:
        op.unknown = (call.peer,)
    return op
