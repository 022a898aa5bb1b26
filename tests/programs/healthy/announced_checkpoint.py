"""Healthy: an announced checkpoint of 35 seconds, during which the storage stands still."""

from __future__ import annotations

import time

import progress
import torch.distributed as dist

import hangwatch


def copy_to_archive() -> None:
    time.sleep(35)


def main() -> None:
    rank = progress.start()
    progress.train(30)
    with hangwatch.phase("checkpoint"):
        if rank == 0:
            copy_to_archive()
        dist.barrier()
    progress.train(20)
    progress.finish()


if __name__ == "__main__":
    main()
