"""Four stages of a pipeline; the second stops computing, and the stall runs through all of them."""

from __future__ import annotations

import time

import progress
import torch
import torch.distributed as dist


def compute() -> None:
    while True:
        time.sleep(60)


def forward(rank: int, last: int, is_stuck: bool) -> None:
    activations = torch.ones(4)
    if rank > 0:
        dist.recv(activations, src=rank - 1)
    if is_stuck:
        compute()
    if rank < last:
        dist.send(activations, dst=rank + 1)


def main() -> None:
    rank = progress.start()
    for batch in range(1000):
        time.sleep(0.05)
        forward(rank, dist.get_world_size() - 1, is_stuck=rank == 1 and batch == 20)
        progress.mark()


if __name__ == "__main__":
    main()
