"""One rank does not come to new_group, in which the other members connect to each other."""

from __future__ import annotations

import time

import progress
import torch.distributed as dist


def train_alone() -> None:
    while True:
        time.sleep(60)


def main() -> None:
    rank = progress.start()
    progress.train(10)
    if rank == 2:
        train_alone()
    dist.new_group(timeout=progress.PATIENCE)
    progress.train(1000)


if __name__ == "__main__":
    main()
