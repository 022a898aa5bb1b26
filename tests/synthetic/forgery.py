"""Telemetry that contradicts itself or others: one rank that is not at fault says the impossible.

Only lies that can be told from the truth are here: a rank that consistently says that it made
another call cannot be told from one that did. What the server refuses at its door is not here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import msgspec
from tests.synthetic import damage, jobs
from tests.synthetic.damage import Damaged
from tests.synthetic.jobs import Job

from hangwatch_agent import wire
from hangwatch_server.model import Snapshot

Beat = wire.RankBeat
Forge = Callable[[Beat, Job, Random], Beat]
_HUGE = 10**9


def forged(job: Job, sort: str, rng: Random) -> Damaged:
    """Both snapshots with the report of one innocent rank replaced by a forged one."""
    touched = damage.others(job, 0.0001, rng) or {_innocent(job, rng)}
    forger = min(touched)
    seed = rng.random()
    earlier, later = (
        _replace(one, forger, job, SORTS[sort], Random(seed)) for one in jobs.pair(job)
    )
    return Damaged(earlier, later, frozenset({forger}))


def _innocent(job: Job, rng: Random) -> int:
    fit = [rank for rank in range(job.mesh.size) if rank not in job.truth.allowed]
    return rng.choice(fit or list(range(job.mesh.size)))


def _replace(snapshot: Snapshot, rank: int, job: Job, forge: Forge, rng: Random) -> Snapshot:
    view = snapshot.ranks[rank]
    if view.beat is None:
        return snapshot
    ranks = {**snapshot.ranks, rank: replace(view, beat=forge(view.beat, job, rng))}
    return replace(snapshot, ranks=ranks)


def _each_group(change: Callable[[wire.GroupBeat], dict[str, object]]) -> Forge:
    def forge(beat: Beat, _job: Job, _rng: Random) -> Beat:
        groups = tuple(msgspec.structs.replace(g, **change(g)) for g in beat.groups)
        return msgspec.structs.replace(beat, groups=groups)

    return forge


def _past(**change: object) -> Forge:
    """The finished entries are changed; what the rank waits in stays true."""
    return _each_group(
        lambda g: {
            "entries": tuple(
                msgspec.structs.replace(e, **change) if e.is_retired else e for e in g.entries
            )
        }
    )


def _disordered(beat: Beat, _job: Job, rng: Random) -> Beat:
    groups = []
    for group in beat.groups:
        entries = list(group.entries) * 2
        rng.shuffle(entries)
        groups.append(msgspec.structs.replace(group, entries=tuple(entries)))
    return msgspec.structs.replace(beat, groups=tuple(groups))


def _finished_the_future(group: wire.GroupBeat) -> dict[str, object]:
    seq = (group.entries[-1].seq if group.entries else 0) + 1000
    entry = wire.Entry(seq=seq, op="all_reduce", is_retired=True)
    return {"entries": (*group.entries, entry)}


def _foreign_group(beat: Beat, job: Job, rng: Random) -> Beat:
    """It says that it waits in groups that it is no member of."""
    gids = [gid for gid, group in job.mesh.groups.items() if beat.rank not in group.ranks]
    entry = wire.Entry(seq=rng.randint(1, 9), op="all_reduce", is_retired=False)
    lies = tuple(
        wire.GroupBeat(
            gid=gid,
            counter=9,
            stall_s=20.0,
            seq=9,
            entries=(entry,),
            entries_age_s=1.0,
            are_entries_current=True,
        )
        for gid in rng.sample(gids, min(2, len(gids)))
    )
    return msgspec.structs.replace(beat, groups=(*beat.groups, *lies))


def _impossible_peers(beat: Beat, job: Job, _rng: Random) -> Beat:
    gid = beat.groups[-1].gid if beat.groups else "nowhere"
    peers = (-1, beat.rank, job.mesh.size + 7)
    calls = tuple(wire.Call(op="recv", gid=gid, age_s=9.0, peer=peer, seq=1) for peer in peers)
    return msgspec.structs.replace(beat, calls=(*beat.calls, *calls))


def _waits_for_too_many(beat: Beat, _job: Job, _rng: Random) -> Beat:
    wait = wire.InitWait(what="init_process_group", age_s=30.0, expected=_HUGE, rank=_HUGE)
    return msgspec.structs.replace(beat, waits=(wait,))


def _negative_p2p(beat: Beat, job: Job, _rng: Random) -> Beat:
    gid = beat.groups[-1].gid if beat.groups else "nowhere"
    counts = tuple(
        wire.P2PCount(gid=gid, peer=peer, is_send=is_send, posted=-3, done=_HUGE)
        for peer in (0, job.mesh.size)
        for is_send in (True, False)
    )
    return msgspec.structs.replace(beat, p2p=(*beat.p2p, *counts))


def _other_world(beat: Beat, job: Job, _rng: Random) -> Beat:
    return msgspec.structs.replace(beat, world_size=job.mesh.size + 3, local_rank=-4)


SORTS: dict[str, Forge] = {
    "number far ahead": _each_group(lambda g: {"seq": _HUGE}),
    "negative numbers": _each_group(lambda g: {"seq": -5, "finished": -7}),
    "entries out of order": _disordered,
    "finished the future": _each_group(_finished_the_future),
    "group that is not": _each_group(lambda g: {"gid": "no-such-group"}),
    "foreign group": _foreign_group,
    "garbage op": _past(op="\x00<script>"),
    "impossible sizes": _past(input_sizes=((2**62, 2**62), (-1,)), input_dtypes=()),
    "impossible peers": _impossible_peers,
    "waits for too many": _waits_for_too_many,
    "finished before entered": _each_group(lambda g: {"finished": _HUGE, "started": _HUGE}),
    "counter against entries": _each_group(lambda g: {"counter": 0, "seq": 0}),
    "negative sends": _negative_p2p,
    "other world": _other_world,
}
