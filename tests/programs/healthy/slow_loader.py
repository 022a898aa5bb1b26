"""Healthy: a loader worker of rank 2 needs 20 seconds of computing for one of its batches."""

from __future__ import annotations

import progress
import torch
import torch.distributed as dist
import work
from torch.utils.data import DataLoader, Dataset


class Videos(Dataset[torch.Tensor]):
    """Sixteen videos; one of them is long where `has_long` is set."""

    def __init__(self, has_long: bool) -> None:
        self.has_long = has_long

    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> torch.Tensor:
        work.compute(20 if self.has_long and index == 12 else 0.3)
        return torch.ones(4)


def main() -> None:
    rank = progress.start()
    for batch in DataLoader(Videos(rank == 2), num_workers=1, prefetch_factor=2):
        dist.all_reduce(batch)
        progress.mark()
    progress.finish()


if __name__ == "__main__":
    main()
