"""Healthy: rank 3 is a member of a group that only logs, and never calls anything on it."""

from __future__ import annotations

import time

import progress
import torch
import torch.distributed as dist


def main() -> None:
    rank = progress.start()
    training = dist.new_group([0, 1, 2], timeout=progress.PATIENCE)
    dist.new_group([2, 3], timeout=progress.PATIENCE)
    if rank < 3:
        for _ in range(250):
            dist.all_reduce(torch.ones(4), group=training)
            progress.mark()
            time.sleep(0.1)
    dist.barrier()
    progress.finish()


if __name__ == "__main__":
    main()
