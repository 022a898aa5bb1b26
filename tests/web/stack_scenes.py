"""Captures for pages, their trees merged by the real code from hand-made stacks.

`cap-before` and `cap-after` are of a 64-rank job of which some ranks moved; `cap-wide` has so many
different stacks that the page cannot show them at once; `cap-odd` holds hostile names.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from tests.web import making

from hangwatch_agent import wire
from hangwatch_server import model, stacks

JOB = "a1b2c3d4e5f6"
C10D = "/opt/venv/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py"
GRAPH = "/opt/venv/lib/python3.12/site-packages/torch/autograd/graph.py"
TENSOR = "/opt/venv/lib/python3.12/site-packages/torch/_tensor.py"
FETCH = "/opt/venv/lib/python3.12/site-packages/torch/utils/data/_utils/fetch.py"
LOADER = "/opt/venv/lib/python3.12/site-packages/torch/utils/data/dataloader.py"
TRAIN = "/home/ada/runs/gpt/train.py"
HOSTILE = '<script>alert("x")</script>\u202egnp'

Place = tuple[str, str, int]
_BASE: tuple[Place, ...] = (("main", TRAIN, 190), ("<module>", TRAIN, 204))
WAITING: tuple[Place, ...] = (
    ("all_reduce", C10D, 3019),
    ("wrapper", C10D, 83),
    ("_engine_run_backward", GRAPH, 841),
    ("backward", TENSOR, 648),
    ("train", TRAIN, 147),
    *_BASE,
)
LOADING: tuple[Place, ...] = (
    ("read", "/home/ada/runs/gpt/storage.py", 212),
    ("__getitem__", TRAIN, 88),
    ("fetch", FETCH, 54),
    ("_next_data", LOADER, 764),
    ("__next__", LOADER, 701),
    ("train", TRAIN, 141),
    *_BASE,
)
LOGGING: tuple[Place, ...] = (
    ("write", TRAIN, 63),
    ("log_metrics", TRAIN, 71),
    ("train", TRAIN, 152),
    *_BASE,
)
WORKER: tuple[Place, ...] = (
    ("__getitem__", TRAIN, 88),
    ("fetch", FETCH, 54),
    (
        "_worker_loop",
        "/opt/venv/lib/python3.12/site-packages/torch/utils/data/_utils/worker.py",
        349,
    ),
)


def part(rank: int, *processes: tuple[str, Sequence[Place]]) -> stacks.RankStacks:
    """One rank's processes: (role, frames innermost first)."""
    made = []
    for number, (role, places) in enumerate(processes):
        pid = 1000 * (rank + 1) + number
        frames = tuple(wire.Frame(name=name, file=file, line=line) for name, file, line in places)
        thread = wire.Thread(pid=pid, thread_id=pid, name="MainThread", frames=frames)
        made.append(wire.ProcessStacks(pid=pid, role=role, threads=(thread,)))
    return stacks.RankStacks(rank, tuple(made))


def before() -> list[stacks.RankStacks]:
    odd = {5: LOADING, 9: WAITING, 10: WAITING}
    return [part(rank, ("main", odd.get(rank, WAITING))) for rank in range(64)]


def after() -> list[stacks.RankStacks]:
    """Rank 5 stands still in its dataloader, 9 and 10 have gone on to write their log."""
    odd = {5: LOADING, 9: LOGGING, 10: LOGGING}
    parts = [part(rank, ("main", odd.get(rank, WAITING))) for rank in range(64)]
    parts[5] = part(5, ("main", LOADING), ("loader", WORKER), ("loader", WORKER))
    return parts


def wide(ranks: int = 400) -> list[stacks.RankStacks]:
    """Every rank at a line of its own."""
    return [
        part(rank, ("main", (("shard", TRAIN, 1000 + rank), ("train", TRAIN, 141), *_BASE)))
        for rank in range(ranks)
    ]


def odd() -> list[stacks.RankStacks]:
    deep = tuple((f"recurse_{n}", TRAIN, n) for n in range(200, 0, -1))
    return [
        part(0, ("main", ((HOSTILE * 20, "/x/" + HOSTILE + ".py", 1), *_BASE))),
        part(1, ("main", (*deep, *_BASE))),
    ]


def tree(
    capture: str,
    now: list[stacks.RankStacks],
    then: Sequence[stacks.RankStacks] = (),
    **more: object,
) -> model.Tree:
    roots, classes = stacks.merge(now, then)
    return model.Tree(capture=capture, roots=roots, classes=classes, missing=(), **more)  # type: ignore[arg-type]


def add(
    captures: dict[str, model.Capture],
    trees: dict[str, model.Tree],
    comparisons: dict[tuple[str, str], model.Comparison],
    waited_for: dict[str, dict[str, str]],
) -> None:
    earlier_at = making.NOW - timedelta(seconds=46)
    captures["cap-before"] = making.capture("cap-before", JOB, "0-63", requested_at=earlier_at)
    captures["cap-after"] = making.capture("cap-after", JOB, "0-63", requested_by="ada")
    captures["cap-wide"] = making.capture("cap-wide", JOB, "0-399")
    captures["cap-odd"] = making.capture("cap-odd", JOB, "0-1")
    trees["cap-before"] = tree("cap-before", before())
    trees["cap-after"] = tree("cap-after", after(), before(), before="cap-before")
    trees["cap-wide"] = tree("cap-wide", wide())
    trees["cap-odd"] = tree("cap-odd", odd())
    earlier, later = captures["cap-before"], captures["cap-after"]
    comparisons["cap-before", "cap-after"] = stacks.compare(
        earlier, stacks.outlined(before()), later, stacks.outlined(after())
    )
    waited_for["cap-taking"] = {"node-a": "3", "node-b": "4-5"}
