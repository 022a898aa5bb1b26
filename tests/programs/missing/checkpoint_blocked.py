"""One rank saves a checkpoint to storage that takes nothing: a pipe without a reader."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import progress
import torch


def save(path: Path) -> None:
    torch.save({"weights": torch.ones(1024)}, path)


def main() -> None:
    rank = progress.start()
    progress.train(20)
    if rank == 0:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.pt"
            os.mkfifo(path)
            save(path)
    progress.train(1000)


if __name__ == "__main__":
    main()
