"""The others start an all_reduce, compute meanwhile and wait for it; one rank never started it."""

from __future__ import annotations

import time

import progress
import torch
import torch.distributed as dist


def look_for_samples() -> None:
    while True:
        time.sleep(60)


def main() -> None:
    rank = progress.start()
    for step in range(12):
        if rank == 1 and step == 11:
            look_for_samples()
        work = dist.all_reduce(torch.ones(4), async_op=True)
        torch.ones(64, 64).matmul(torch.ones(64, 64))
        assert work is not None
        work.wait()
        progress.mark()


if __name__ == "__main__":
    main()
