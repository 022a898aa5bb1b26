"""A member stays away from its subgroup; the other subgroup waits for this one at a barrier."""

from __future__ import annotations

import time

import progress
import torch
import torch.distributed as dist


def compute_expert() -> None:
    while True:
        time.sleep(60)


def main() -> None:
    rank = progress.start()
    group, _ = dist.new_subgroups(group_size=2, timeout=progress.PATIENCE)
    for step in range(1000):
        time.sleep(0.1)
        if rank == 3 and step == 20:
            compute_expert()
        dist.all_reduce(torch.ones(4), group=group)
        dist.barrier()
        progress.mark()


if __name__ == "__main__":
    main()
