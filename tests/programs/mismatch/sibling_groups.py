"""Two ranks of one group disagree, a tie; the other group of the same kind tells who is wrong."""

from __future__ import annotations

import progress
import torch
import torch.distributed as dist


def main() -> None:
    rank = progress.start()
    group, _ = dist.new_subgroups(2, timeout=progress.PATIENCE, group_desc="tensor")
    progress.train(10)
    if rank == 1:
        dist.barrier(group)
    for _ in range(1000):
        dist.all_reduce(torch.ones(4), group=group)
        dist.barrier()
        progress.mark()


if __name__ == "__main__":
    main()
