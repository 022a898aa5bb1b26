"""One rank never reaches monitored_barrier, whose own timeout is as long as the group's."""

from __future__ import annotations

import time

import progress
import torch.distributed as dist


def evaluate_alone() -> None:
    while True:
        time.sleep(60)


def main() -> None:
    rank = progress.start()
    progress.train(10)
    if rank == 3:
        evaluate_alone()
    dist.monitored_barrier(timeout=progress.PATIENCE)


if __name__ == "__main__":
    main()
