"""Sends and the receives that should meet them, pair by pair: facts to keep of a hang between two
ranks. Counts side by side, no judgement.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hangwatch_agent.wire import Call, P2PCount, RankBeat
from hangwatch_server.diagnose import standing
from hangwatch_server.diagnose.pending.p2p import ANY_PEER
from hangwatch_server.model import GroupView, OpenCall, Pair, PairSide, Snapshot

MAX_PAIRS = 24
_SENDS = "send"
_Key = tuple[str, int, int]  # gid, sender, receiver; ANY_PEER for a receive from any rank


def pairs(snapshot: Snapshot, ranks: Iterable[int]) -> tuple[Pair, ...]:
    """The pairs that these ranks take part in: those with an open call first, then uneven ones."""
    keys = dict.fromkeys(key for rank in ranks for key in _keys(snapshot, rank))
    found = [_pair(snapshot, key) for key in keys]
    return tuple(sorted(found, key=_order)[:MAX_PAIRS])


def _order(pair: Pair) -> tuple[bool, bool, float, int, int]:
    is_uneven = (
        pair.sends is not None
        and pair.receives is not None
        and pair.sends.posted != pair.receives.posted
    )
    longest_s = max((one.waits_s for one in pair.calls), default=0.0)
    return (not pair.calls, not is_uneven, -longest_s, pair.sender or 0, pair.receiver)


def _keys(snapshot: Snapshot, rank: int) -> Iterator[_Key]:
    beat = _beat(snapshot, rank)
    if beat is None:
        return
    for count in beat.p2p:
        ends = (rank, count.peer) if count.is_send else (count.peer, rank)
        yield (count.gid, *ends)
    for call in beat.calls:
        if (ends_ := _ends(call, rank)) is not None:
            yield (call.gid, *ends_)


def _ends(call: Call, rank: int) -> tuple[int, int] | None:
    """Sender and receiver of a call; None for one that is no send or receive."""
    if call.op == _SENDS:
        return None if call.peer is None else (rank, call.peer)
    if call.op in ("recv", "recv_any"):
        return (ANY_PEER if call.peer is None else call.peer), rank
    return None


def _pair(snapshot: Snapshot, key: _Key) -> Pair:
    gid, sender, receiver = key
    return Pair(
        group=_name(snapshot.groups.get(gid)),
        sender=None if sender == ANY_PEER else sender,
        receiver=receiver,
        sends=_side(_beat(snapshot, sender), gid, receiver, is_send=True),
        receives=_side(_beat(snapshot, receiver), gid, sender, is_send=False),
        calls=tuple(
            OpenCall(
                rank=rank,
                is_send=call.op == _SENDS,
                number=call.seq,
                tag=call.tag,
                waits_s=round(call.age_s + snapshot.ranks[rank].age_s, 1),
                is_blocking=call.is_blocking,
                site=call.site,
            )
            for rank in dict.fromkeys((sender, receiver))
            for call in _open(_beat(snapshot, rank), rank, key)
        ),
    )


def _side(beat: RankBeat | None, gid: str, peer: int, *, is_send: bool) -> PairSide | None:
    if beat is None:
        return None
    count = next((one for one in beat.p2p if _is_of(one, gid, peer, is_send)), None)
    if count is None:
        return PairSide(posted=0, finished=0) if standing.has_probe(beat) else None
    return PairSide(posted=count.posted, finished=count.done)


def _name(group: GroupView | None) -> str:
    if group is None:
        return ""
    return "default_pg" if group.description == "default_pg" else group.name


def _is_of(count: P2PCount, gid: str, peer: int, is_send: bool) -> bool:
    return count.gid == gid and count.peer == peer and count.is_send == is_send


def _open(beat: RankBeat | None, rank: int, key: _Key) -> list[Call]:
    calls = beat.calls if beat is not None else ()
    return [call for call in calls if (call.gid, *(_ends(call, rank) or ())) == key]


def _beat(snapshot: Snapshot, rank: int) -> RankBeat | None:
    view = snapshot.ranks.get(rank)
    return view.beat if view is not None else None
