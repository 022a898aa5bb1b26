"""A mesh of tensor, data and pipeline groups over the ranks of a job, and the world group.

Groups are named as training frameworks name them: a description per axis, or none at all.
"""

from __future__ import annotations

from dataclasses import dataclass

WORLD = "world"
PAIR = "pair"


@dataclass(frozen=True, slots=True)
class Group:
    """`axis` is "tp", "dp", "pp" or "world"; `ranks` ascend."""

    gid: str
    axis: str
    name: str
    description: str
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Mesh:
    """`of_rank` gives each rank's gid per axis; an axis of width 1 has no group."""

    shape: tuple[int, int, int]
    groups: dict[str, Group]
    of_rank: list[dict[str, str]]
    ranks_per_node: int

    @property
    def size(self) -> int:
        return len(self.of_rank)

    def members(self, gid: str) -> tuple[int, ...]:
        return self.groups[gid].ranks

    def node_of(self, rank: int) -> int:
        return rank // self.ranks_per_node

    def on_node(self, node: int) -> range:
        first = node * self.ranks_per_node
        return range(first, min(first + self.ranks_per_node, self.size))

    def siblings(self, gid: str) -> list[Group]:
        """The other groups of the same axis, which make the same calls."""
        axis = self.groups[gid].axis
        return [g for g in self.groups.values() if g.axis == axis and g.gid != gid]


def build(
    tensor: int,
    data: int,
    pipe: int,
    *,
    ranks_per_node: int = 8,
    are_described: bool = True,
) -> Mesh:
    """Ranks count up along tensor first, then data, then pipe."""
    size = tensor * data * pipe
    groups: dict[str, Group] = {}
    of_rank: list[dict[str, str]] = [{} for _ in range(size)]
    axes = {"tp": (1, tensor), "dp": (tensor, data), "pp": (tensor * data, pipe)}
    for axis, (stride, width) in axes.items():
        if width == 1:
            continue
        for first in range(size):
            if (first // stride) % width == 0:
                members = tuple(first + step * stride for step in range(width))
                group = Group(
                    f"{axis}-{first}",
                    axis,
                    str(len(groups) + 1),
                    axis if are_described else "undefined",
                    members,
                )
                _add(groups, of_rank, group)
    _add(groups, of_rank, Group(WORLD, WORLD, "0", "default_pg", tuple(range(size))))
    return Mesh((tensor, data, pipe), groups, of_rank, ranks_per_node)


def build_large(size: int) -> Mesh:
    """Two groups per rank and 128 more, as large frameworks make: pairs of tensor, of expert and
    of pipeline neighbours, and 128 data groups; no world group. `size` is a multiple of 512."""
    mesh = Mesh((2, size // 128, 64), {}, [{} for _ in range(size)], 8)
    for first in range(0, size, 2):
        _add(mesh.groups, mesh.of_rank, _pair("tp", first, first + 1))
    for first in range(0, size, 4):
        for rank in (first, first + 1):
            _add(mesh.groups, mesh.of_rank, _pair("ep", rank, rank + 2))
    for first in range(128):
        members = tuple(range(first, size, 128))
        _add(mesh.groups, mesh.of_rank, Group(f"dp-{first}", "dp", f"dp-{first}", "dp", members))
    for rank in range(size):
        pair = _pair("next", rank, (rank + 4) % size)
        mesh.groups[pair.gid] = pair
        mesh.of_rank[rank]["next"] = mesh.of_rank[(rank + 4) % size]["previous"] = pair.gid
    return mesh


def _pair(axis: str, first: int, second: int) -> Group:
    name = f"{axis}-{first}"
    return Group(name, axis, name, axis, tuple(sorted((first, second))))


def add_ring(mesh: Mesh, ranks: tuple[int, ...]) -> list[Group]:
    """A group of each two neighbours in the ring of these ranks; the last one closes it."""
    made = []
    for first, second in zip(ranks, (*ranks[1:], ranks[0]), strict=True):
        gid = f"pair-{first}-{second}"
        members = tuple(sorted((first, second)))
        group = Group(gid, gid, str(len(mesh.groups) + 1), PAIR, members)
        _add(mesh.groups, mesh.of_rank, group)
        made.append(group)
    return made


def _add(groups: dict[str, Group], of_rank: list[dict[str, str]], group: Group) -> None:
    groups[group.gid] = group
    for rank in group.ranks:
        of_rank[rank][group.axis] = group.gid
