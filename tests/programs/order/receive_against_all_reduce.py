"""Rank 1 receives before it reduces, rank 0 reduces before it sends: each waits for the other."""

from __future__ import annotations

import progress
import torch
import torch.distributed as dist


def main() -> None:
    rank = progress.start()
    progress.train(10)
    if rank == 0:
        dist.all_reduce(torch.ones(4))
        dist.send(torch.ones(4), dst=1)
    else:
        dist.recv(torch.zeros(4), src=0)
        dist.all_reduce(torch.ones(4))
    progress.train(1000)


if __name__ == "__main__":
    main()
