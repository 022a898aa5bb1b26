"""Rank 0 sends to rank 1, which does not come to receive it."""

from __future__ import annotations

import time

import progress
import torch
import torch.distributed as dist


def write_samples() -> None:
    while True:
        time.sleep(60)


def main() -> None:
    rank = progress.start()
    for step in range(12):
        if rank == 0:
            dist.send(torch.ones(4), dst=1)
        else:
            if step == 11:
                write_samples()
            dist.recv(torch.zeros(4), src=0)
        progress.mark()


if __name__ == "__main__":
    main()
