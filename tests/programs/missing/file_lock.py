"""Rank 0 keeps the lock file of a shared cache while it trains on; rank 1 waits for the lock."""

from __future__ import annotations

import fcntl
import os
import tempfile
from pathlib import Path

import progress
import torch.distributed as dist


def open_locked(path: Path) -> int:
    handle = os.open(path, os.O_CREAT | os.O_RDWR)
    fcntl.flock(handle, fcntl.LOCK_EX)
    return handle


def main() -> None:
    rank = progress.start()
    path = Path(tempfile.gettempdir()) / f"hangwatch-cache-{os.environ['MASTER_PORT']}.lock"
    if rank == 0:
        open_locked(path)
    dist.barrier()
    progress.train(10)
    if rank == 1:
        open_locked(path)
    progress.train(1000)


if __name__ == "__main__":
    main()
