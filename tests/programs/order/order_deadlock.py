"""Two ranks call collectives of two groups in opposite order: each waits for the other."""

from __future__ import annotations

import progress
import torch
import torch.distributed as dist


def main() -> None:
    rank = progress.start()
    tensor_group = dist.new_group(timeout=progress.PATIENCE, group_desc="tensor")
    data_group = dist.new_group(timeout=progress.PATIENCE, group_desc="data")
    progress.train(10)
    first, second = (tensor_group, data_group) if rank == 0 else (data_group, tensor_group)
    dist.all_reduce(torch.ones(4), group=first)
    dist.all_reduce(torch.ones(4), group=second)


if __name__ == "__main__":
    main()
