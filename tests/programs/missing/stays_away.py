"""All ranks but some make one call of a kind; those some do something else for ever.

What the others wait in depends on the call: the leaf of a broadcast keeps only the ranks above it
in the tree, and the rest run on into the next all_reduce.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import progress
import torch
import torch.distributed as dist

ROOT = 0


def parts() -> list[torch.Tensor]:
    return [torch.zeros(4) for _ in range(dist.get_world_size())]


def gather() -> None:
    dist.gather(torch.ones(4), parts() if dist.get_rank() == ROOT else None, dst=ROOT)


def scatter() -> None:
    dist.scatter(torch.zeros(4), parts() if dist.get_rank() == ROOT else None, src=ROOT)


def all_to_all() -> None:
    size = dist.get_world_size()
    dist.all_to_all_single(torch.zeros(size), torch.ones(size))


CALLS: dict[str, Callable[[], object]] = {
    "broadcast": lambda: dist.broadcast(torch.ones(4), src=ROOT),
    "broadcast-objects": lambda: dist.broadcast_object_list([{"lr": 0.1}], src=ROOT),
    "reduce": lambda: dist.reduce(torch.ones(4), dst=ROOT),
    "gather": gather,
    "scatter": scatter,
    "all-to-all": all_to_all,
    "reduce-scatter": lambda: dist.reduce_scatter_tensor(
        torch.zeros(4), torch.ones(4 * dist.get_world_size())
    ),
}


def look_for_samples() -> None:
    while True:
        time.sleep(60)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--call", choices=CALLS, required=True)
    parser.add_argument("--absent", type=int, nargs="+", required=True)
    asked = parser.parse_args()
    rank = progress.start()
    progress.train(10)
    if rank in asked.absent:
        look_for_samples()
    CALLS[asked.call]()
    progress.train(1000)


if __name__ == "__main__":
    main()
