"""One rank's loader worker reads from storage that never answers (a pipe without a writer)."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import progress
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class Shards(Dataset[torch.Tensor]):
    """Sixteen samples; the twelfth lies on the storage of `rank` that does not answer."""

    def __init__(self, stuck_path: Path | None) -> None:
        self.stuck_path = stuck_path

    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> torch.Tensor:
        if index == 12 and self.stuck_path is not None:
            self.stuck_path.read_bytes()
        return torch.ones(4)


def main() -> None:
    rank = progress.start()
    with tempfile.TemporaryDirectory() as folder:
        stuck_path = Path(folder) / "shard-12"
        os.mkfifo(stuck_path)
        shards = Shards(stuck_path if rank == 1 else None)
        for batch in DataLoader(shards, num_workers=1, prefetch_factor=2):
            dist.all_reduce(batch)
            progress.mark()


if __name__ == "__main__":
    main()
