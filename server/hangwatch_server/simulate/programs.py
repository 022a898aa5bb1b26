"""What each rank of a job calls, in order: several training styles over one mesh.

A program is a list of calls. All ranks of a healthy job have programs that fit together; a fault is
an edit of some of them or a place where one stops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from hangwatch_server.simulate.meshes import WORLD, Mesh

SEND, RECV, WAIT = "send", "recv", "wait"
P2P = frozenset({SEND, RECV})
ROOT_SENDS = frozenset({"broadcast", "scatter"})
ROOT_RECEIVES = frozenset({"reduce", "gather"})


class Call(NamedTuple):
    """One call on a group; `peer` for send and recv, `root` for rooted ops, both global ranks.

    An asynchronous call is left at once; a later "wait" on its group ends when it has finished.
    """

    gid: str
    op: str = "all_reduce"
    size: int = 1024
    dtype: str = "Float"
    root: int | None = None
    peer: int | None = None
    is_async: bool = False

    @property
    def is_collective(self) -> bool:
        return self.op not in P2P and self.op != WAIT


Program = list[Call]
Style = Callable[[Mesh, int], Program]


def plain(mesh: Mesh, rank: int) -> Program:
    """One all_reduce on every group per step."""
    return [Call(gid) for gid in mesh.of_rank[rank].values()]


def sharded(mesh: Mesh, rank: int) -> Program:
    """Fully sharded data parallel: gathers, then a reduce_scatter, beside tensor parallel."""
    mine = mesh.of_rank[rank]
    calls: Program = []
    for axis, op, size in (
        ("dp", "all_gather", 512),
        ("tp", "all_reduce", 4096),
        ("dp", "all_gather", 1024),
        ("tp", "all_reduce", 2048),
        ("dp", "reduce_scatter", 512),
        ("pp", "all_reduce", 16),
        (WORLD, "all_reduce", 1),
    ):
        if axis in mine:
            calls.append(Call(mine[axis], op, size))
    return calls


def rooted(mesh: Mesh, rank: int) -> Program:
    """A broadcast of settings, a reduce and a gather of losses around the usual calls."""
    mine = mesh.of_rank[rank]
    calls = [Call(WORLD, "broadcast", 1, root=0)]
    if "tp" in mine:
        calls.append(Call(mine["tp"]))
    if "dp" in mine:
        calls.append(Call(mine["dp"]))
        calls.append(Call(mine["dp"], "reduce", 1, root=mesh.members(mine["dp"])[0]))
    if "pp" in mine:
        calls.append(Call(mine["pp"], "gather", 1, root=mesh.members(mine["pp"])[-1]))
    calls.append(Call(WORLD))
    return calls


def pipelined(mesh: Mesh, rank: int) -> Program:
    """Forward and backward through the stages by send and recv, as Megatron does."""
    mine = mesh.of_rank[rank]
    before, after = _neighbours(mesh, rank)
    inner = [Call(mine["tp"], size=4096)] * 2 if "tp" in mine else []
    calls: Program = []
    for source, target in ((before, after), (after, before)):
        if source is not None:
            calls.append(Call(mine["pp"], RECV, 2048, peer=source))
        calls.extend(inner)
        if target is not None:
            calls.append(Call(mine["pp"], SEND, 2048, peer=target))
    if "dp" in mine:
        calls.append(Call(mine["dp"], "reduce_scatter", 8192))
        calls.append(Call(mine["dp"], "all_gather", 8192))
    calls.append(Call(WORLD, "all_reduce", 1))
    return calls


def overlapped(mesh: Mesh, rank: int) -> Program:
    """Gradient buckets reduced asynchronously while the tensor groups go on; gloo only."""
    mine = mesh.of_rank[rank]
    calls: Program = []
    for size in (256, 512):
        if "dp" in mine:
            calls.append(Call(mine["dp"], "all_reduce", size, is_async=True))
        if "tp" in mine:
            calls.append(Call(mine["tp"], size=4096))
    if "dp" in mine:
        calls.append(Call(mine["dp"], WAIT))
    if "pp" in mine:
        calls.append(Call(mine["pp"], size=16))
    calls.append(Call(WORLD, "all_reduce", 1))
    return calls


STYLES: dict[str, Style] = {
    "plain": plain,
    "sharded": sharded,
    "rooted": rooted,
    "pipelined": pipelined,
    "overlapped": overlapped,
}
BLOCKING_COLLECTIVES = ("plain", "sharded")  # every member of a call waits for every other


def write(mesh: Mesh, style: str, steps: int) -> list[Program]:
    """The program of every rank; a list that may be edited."""
    step = STYLES[style]
    return [step(mesh, rank) * steps for rank in range(mesh.size)]


def _neighbours(mesh: Mesh, rank: int) -> tuple[int | None, int | None]:
    """The ranks of the previous and the next pipeline stage."""
    gid = mesh.of_rank[rank].get("pp")
    if gid is None:
        return None, None
    stages = mesh.members(gid)
    place = stages.index(rank)
    before = stages[place - 1] if place > 0 else None
    after = stages[place + 1] if place + 1 < len(stages) else None
    return before, after
