"""Jobs of many ranks over a mesh of tensor, data and pipeline groups: pages at their real size."""

from __future__ import annotations

from dataclasses import dataclass

from tests.web import making, scenes

from hangwatch_agent import wire
from hangwatch_server import model, ranges
from hangwatch_server.simulate import meshes

JOB = "4d00c0ffee00"
PER_NODE = 8
LINE = "train.py:88 in __getitem__"


@dataclass(frozen=True, slots=True)
class Shape:
    """Ranks along each dimension, tensor innermost."""

    tensor: int
    data: int
    pipe: int

    @property
    def size(self) -> int:
        return self.tensor * self.data * self.pipe


SMALL = Shape(8, 8, 8)
LARGE = Shape(8, 64, 8)
LARGEST = Shape(8, 128, 16)


def scene(shape: Shape, *, is_hung: bool = False) -> scenes.Scene:
    """One such job. When hung, a rank in the middle is in its dataloader, and a node is silent."""
    made = scenes.Scene()
    culprit = shape.size * 3 // 8 + 5 if is_hung else None
    silent = range(shape.size - PER_NODE, shape.size) if is_hung else range(0)
    said = _verdict(shape, culprit, silent)
    rows = tuple(_rank(number, culprit, silent) for number in range(shape.size))
    nodes = tuple(dict.fromkeys(row.node for row in rows))
    made.add(making.job(said, nodes, attempt=2), rows, *_groups(shape, culprit))
    made.nodes = [making.node(name) for name in nodes]
    return made


def _verdict(shape: Shape, culprit: int | None, silent: range) -> model.Verdict:
    if culprit is None:
        return making.verdict(JOB, "llama-70b", model.State.HEALTHY, world_size=shape.size)
    waiting = ranges.text(rank for rank in range(shape.size) if rank != culprit)
    return making.verdict(
        JOB,
        "llama-70b",
        model.State.HUNG,
        kind=model.Kind.MISSING_RANKS,
        confidence=0.94,
        stalled_s=252.4,
        world_size=shape.size,
        summary=(
            f"Rank {culprit} never entered all_reduce #1042 of group dp-5; {shape.size - 1:,} "
            f"ranks have waited 4 min 12 s. It is in its dataloader: {LINE}."
        ),
        culprit_ranks=str(culprit),
        waiting=waiting,
        coverage=model.Coverage(
            reporting=shape.size - len(silent), world_size=shape.size, silent=ranges.text(silent)
        ),
        incident="inc-wide",
    )


def _rank(number: int, culprit: int | None, silent: range) -> model.RankRow:
    if culprit is None:
        return making.rank(number, per_node=PER_NODE, signature="c0")
    if number == culprit:
        return making.rank(
            number,
            "culprit",
            per_node=PER_NODE,
            condition=model.Condition.IN_DATALOADER,
            where=LINE,
            signature="c1",
        )
    if number in silent:
        link, age_s = model.Link.LATE, 12.0
        return making.rank(number, "silent", per_node=PER_NODE, link=link, age_s=age_s)
    return making.rank(
        number,
        "waiting",
        per_node=PER_NODE,
        waits_in=f"tp-{number // 8} all_reduce #9311",
        where="train.py:147 in train",
        signature="c2" if number % 97 else "c3",
        depth=wire.Depth.PROBE,
    )


def _groups(shape: Shape, culprit: int | None) -> list[model.GroupRow]:
    mesh = meshes.build(shape.tensor, shape.data, shape.pipe)
    number: dict[str, int] = {}
    rows = []
    for group in mesh.groups.values():
        at = number[group.axis] = number.get(group.axis, -1) + 1
        is_behind = group.axis == "dp" and culprit in group.ranks
        others = [rank for rank in group.ranks if rank != culprit]
        rows.append(
            making.group(
                f"{group.axis}-{at}" if group.axis != "world" else "world",
                ranges.text(group.ranks),
                behind=str(culprit) if is_behind else "",
                waiting=ranges.text(others) if is_behind else "",
                op="all_reduce" if is_behind else "",
                payload="26 MB float" if is_behind else "",
                stalled_s=252.0 if is_behind else 0.0,
            )
        )
    return sorted(rows, key=lambda row: (not row.waiting, -row.size))
