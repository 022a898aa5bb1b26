"""Each epoch makes its group anew; in the third, one rank does not come to a call of the new group.

All these groups have the same ranks, and in each the calls are numbered from one again.
"""

from __future__ import annotations

import time

import progress
import torch
import torch.distributed as dist


def shuffle_shards() -> None:
    while True:
        time.sleep(60)


def main() -> None:
    rank = progress.start()
    for epoch in range(3):
        group = dist.new_group(timeout=progress.PATIENCE)
        for step in range(8):
            time.sleep(0.1)
            if rank == 1 and (epoch, step) == (2, 4):
                shuffle_shards()
            dist.all_reduce(torch.ones(4), group=group)
            progress.mark()
        dist.barrier()
        dist.destroy_process_group(group)


if __name__ == "__main__":
    main()
