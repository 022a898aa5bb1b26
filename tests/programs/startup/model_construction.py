"""One rank builds its model; the others wait in the constructor of DistributedDataParallel."""

from __future__ import annotations

import time

import progress
import torch
from torch.nn.parallel import DistributedDataParallel


def build_vocabulary() -> None:
    while True:
        time.sleep(60)


def main() -> None:
    rank = progress.start()
    if rank == 1:
        build_vocabulary()
    DistributedDataParallel(torch.nn.Linear(4, 4))
    progress.train(1000)


if __name__ == "__main__":
    main()
