"""Rank 0 saves a checkpoint to storage that takes nothing (a pipe nobody reads)."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import progress
import torch
import torch.distributed as dist


def save_checkpoint(folder: Path) -> None:
    target = folder / "step-20.pt"
    os.mkfifo(target)
    with target.open("wb") as file:
        torch.save({"weights": torch.ones(1024)}, file)


def main() -> None:
    rank = progress.start()
    progress.train(20)
    with tempfile.TemporaryDirectory() as folder:
        if rank == 0:
            save_checkpoint(Path(folder))
        dist.barrier()


if __name__ == "__main__":
    main()
