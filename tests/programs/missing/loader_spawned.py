"""One rank's loader worker, spawned and not forked, waits for a licence server that is silent."""

from __future__ import annotations

import time

import progress
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class Images(Dataset[torch.Tensor]):
    """Sixteen samples, the twelfth of which cannot be decoded on `rank`."""

    def __init__(self, is_stuck: bool) -> None:
        self.is_stuck = is_stuck

    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> torch.Tensor:
        if index == 12 and self.is_stuck:
            self.ask_for_licence()
        return torch.ones(4)

    def ask_for_licence(self) -> None:
        while True:
            time.sleep(60)


def main() -> None:
    rank = progress.start()
    images = Images(is_stuck=rank == 1)
    loader = DataLoader(images, num_workers=1, prefetch_factor=2, multiprocessing_context="spawn")
    for batch in loader:
        dist.all_reduce(batch)
        progress.mark()


if __name__ == "__main__":
    main()
