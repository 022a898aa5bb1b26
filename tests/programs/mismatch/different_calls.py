"""At the same place the ranks make different calls: `--calls` names the call of each rank."""

from __future__ import annotations

import argparse
from collections.abc import Callable

import progress
import torch
import torch.distributed as dist


def all_gather() -> None:
    gathered = [torch.zeros(4) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, torch.ones(4))


CALLS: dict[str, Callable[[], object]] = {
    "all_reduce": lambda: dist.all_reduce(torch.ones(4)),
    "all_gather": all_gather,
    "barrier": dist.barrier,
    "broadcast": lambda: dist.broadcast(torch.ones(4), src=0),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", choices=CALLS, nargs="+", required=True)
    calls = parser.parse_args().calls
    rank = progress.start()
    progress.train(10)
    CALLS[calls[rank]]()
    progress.train(1000)


if __name__ == "__main__":
    main()
