"""Small snapshots for diagnosis tests: ranks of one job, built from few words; no assertions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import msgspec

from hangwatch_agent import wire
from hangwatch_server import ranges
from hangwatch_server.model import Activity, GroupView, Link, RankView, Snapshot, StackFacts

LAUNCH = "job-1"


def entry(
    seq: int,
    op: str = "all_reduce",
    *,
    retired: bool = False,
    size: int = 4,
    dtype: str = "Float",
    started: bool | None = None,
) -> wire.Entry:
    return wire.Entry(
        seq=seq,
        op=op,
        is_retired=retired,
        is_started=started,
        input_sizes=((size,),),
        output_sizes=((size,),),
        input_dtypes=(dtype,),
        output_dtypes=(dtype,),
        record_id=seq,
    )


def at(
    gid: str,
    done: int,
    front: wire.Entry | int | None = None,
    *,
    stall_s: float = 12.0,
    op: str = "all_reduce",
) -> wire.GroupBeat:
    """A gloo rank that finished `done` and waits in `front` (a seq or an entry), freshly dumped."""
    waiting = entry(front, op) if isinstance(front, int) else front
    past = tuple(entry(seq, op, retired=True) for seq in range(max(1, done - 2), done + 1))
    entries = (*past, *((waiting,) if waiting is not None else ()))
    return wire.GroupBeat(
        gid=gid,
        counter=entries[-1].seq if entries else 0,
        stall_s=stall_s,
        entries=entries,
        entries_age_s=1.0,
        are_entries_current=True,
    )


def counter_only(
    gid: str, counter: int, *, seq: int | None = None, stall_s: float = 12.0
) -> wire.GroupBeat:
    """A rank whose recorder was never dumped."""
    return wire.GroupBeat(gid=gid, counter=counter, stall_s=stall_s, seq=seq)


def process(state: str = "S", **facts: object) -> wire.ProcessFacts:
    return msgspec.convert({"state": state, "main_cpu_share": 0.0, **facts}, wire.ProcessFacts)


def rank(
    number: int,
    *groups: wire.GroupBeat,
    node: str = "node-a",
    link: Link = Link.LIVE,
    age_s: float = 0.2,
    facts: wire.ProcessFacts | None = None,
    stack: StackFacts | None = None,
    **beat: object,
) -> RankView:
    said = wire.RankBeat(
        launch=LAUNCH,
        rank=number,
        local_rank=number,
        world_size=0,
        pid=800 + number,
        start_ticks=1,
        process=facts or process(),
        depth=wire.Depth.PROBE,
        is_rank_certain=True,
        is_initialised=True,
        groups=groups,
    )
    said = msgspec.structs.replace(said, **beat)
    placed = replace(stack, pid=800 + number) if stack is not None else None
    return RankView(rank=number, node=node, link=link, age_s=age_s, beat=said, stack=placed)


def unseen(number: int) -> RankView:
    return RankView(rank=number, node="", link=Link.LOST, age_s=0.0, beat=None)


def stack(
    activity: Activity, where: str = "train.py:88 in step", *, op: str = "", **facts: object
) -> StackFacts:
    known = StackFacts(pid=0, age_s=1.0, where=where, leaf=where, activity=activity, op=op)
    return replace(known, **facts)  # type: ignore[arg-type]


def group(
    gid: str, ranks: Iterable[int], *, name: str = "", description: str = "", backend: str = "gloo"
) -> GroupView:
    return GroupView(
        gid=gid,
        name=name or gid,
        description=description or name or gid,
        backend=backend,
        ranks=tuple(sorted(ranks)),
    )


def world(*ranks: int) -> GroupView:
    return group("world", ranks, name="0", description="default_pg")


def snapshot(
    views: Iterable[RankView], groups: Iterable[GroupView], *, world_size: int = 0
) -> Snapshot:
    by_rank: Mapping[int, RankView] = {view.rank: view for view in views}
    return Snapshot(
        job="b3",
        attempt=1,
        world_size=world_size or len(by_rank),
        ranks=dict(by_rank),
        groups={item.gid: item for item in groups},
        taken_s=100.0,
        age_s=100.0,
    )


def names(text: str) -> tuple[int, ...]:
    return ranges.parse(text)
