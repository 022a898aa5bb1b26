"""A generator of ground-truthed jobs: a TP x DP x PP mesh in which one known thing went wrong.

Every rank makes, per step, a collective on its tensor, data and pipeline group and one on the
world. The fault stops some ranks before a step's collective; the wait then spreads until nobody
can move, which is what the counters of a real hang show. No diagnosis happens here.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from hangwatch_agent import wire
from hangwatch_server.model import GroupView, Link, RankView, Snapshot

LAUNCH = "mesh"


@dataclass(frozen=True, slots=True)
class Mesh:
    """`groups` by gid; `order` the gids of each rank's calls in one step."""

    size: int
    groups: dict[str, tuple[int, ...]]
    order: list[list[str]]


def mesh(tensor: int, data: int, pipe: int, *, with_world: bool = True) -> Mesh:
    size = tensor * data * pipe
    groups: dict[str, tuple[int, ...]] = {}
    order: list[list[str]] = [[] for _ in range(size)]
    for axis, (stride, width) in {
        "tp": (1, tensor),
        "dp": (tensor, data),
        "pp": (tensor * data, pipe),
    }.items():
        for first in range(size):
            if width > 1 and (first // stride) % width == 0:
                members = tuple(first + step * stride for step in range(width))
                _add(groups, order, f"{axis}-{first}", members)
    if with_world:
        _add(groups, order, "world", tuple(range(size)))
    return Mesh(size, groups, order)


def run(job: Mesh, stuck: dict[int, int], steps: int = 3) -> list[int]:
    """Calls that each rank has finished when nobody can move; `stuck` ranks stop after theirs."""
    done = [0] * job.size
    moved = True
    while moved:
        moved = False
        for gid, members in job.groups.items():
            if all(_is_at(job, done, stuck, rank, gid, steps) for rank in members):
                for rank in members:
                    done[rank] += 1
                moved = True
    return done


def snapshot(
    job: Mesh,
    stuck: Collection[int],
    done: list[int],
    *,
    silent: Collection[int] = (),
    steps: int = 3,
    ranks_per_node: int = 8,
) -> Snapshot:
    """What the agents report: `stuck` ranks are in no call, all others wait in their next one."""
    views = {
        rank: _view(job, rank, done[rank], rank in stuck, rank in silent, steps, ranks_per_node)
        for rank in range(job.size)
    }
    return Snapshot(
        job="mesh",
        attempt=1,
        world_size=job.size,
        ranks=views,
        groups={gid: _group(gid, members) for gid, members in job.groups.items()},
        taken_s=100.0,
        age_s=100.0,
    )


def _add(
    groups: dict[str, tuple[int, ...]], order: list[list[str]], gid: str, members: tuple[int, ...]
) -> None:
    groups[gid] = members
    for rank in members:
        order[rank].append(gid)


def _is_at(
    job: Mesh, done: list[int], stuck: dict[int, int], rank: int, gid: str, steps: int
) -> bool:
    calls = job.order[rank]
    place = done[rank]
    if place >= min(stuck.get(rank, steps * len(calls)), steps * len(calls)):
        return False
    return calls[place % len(calls)] == gid


def _view(
    job: Mesh, rank: int, done: int, is_stuck: bool, is_silent: bool, steps: int, per_node: int
) -> RankView:
    calls = job.order[rank]
    is_over = done >= steps * len(calls)
    beats = []
    for place, gid in enumerate(calls):
        finished = done // len(calls) + (1 if done % len(calls) > place else 0)
        is_front = not is_stuck and not is_over and done % len(calls) == place
        beats.append(_beat(gid, finished, is_front))
    beat = wire.RankBeat(
        launch=LAUNCH,
        rank=rank,
        local_rank=rank % per_node,
        world_size=job.size,
        pid=1000 + rank,
        start_ticks=1,
        process=wire.ProcessFacts(state="S", main_cpu_share=0.0),
        depth=wire.Depth.PROBE,
        is_rank_certain=True,
        is_initialised=True,
        groups=tuple(beats),
    )
    return RankView(
        rank=rank,
        node=f"node-{rank // per_node}",
        link=Link.LOST if is_silent else Link.LIVE,
        age_s=40.0 if is_silent else 0.5,
        beat=beat,
    )


def _beat(gid: str, finished: int, is_front: bool) -> wire.GroupBeat:
    entries = [_entry(seq, True) for seq in range(max(1, finished - 2), finished + 1)]
    if is_front:
        entries.append(_entry(finished + 1, False))
    return wire.GroupBeat(
        gid=gid,
        counter=finished + is_front,
        stall_s=12.0,
        entries=tuple(entries),
        entries_age_s=1.0,
        are_entries_current=True,
    )


def _entry(seq: int, is_retired: bool) -> wire.Entry:
    return wire.Entry(
        seq=seq,
        op="all_reduce",
        is_retired=is_retired,
        input_sizes=((4,),),
        output_sizes=((4,),),
        input_dtypes=("Float",),
        output_dtypes=("Float",),
    )


def _group(gid: str, members: tuple[int, ...]) -> GroupView:
    return GroupView(gid=gid, name=gid, description=gid, backend="gloo", ranks=members)
