"""One rank sends, the other receives, but with different tags: each waits for the other's half."""

from __future__ import annotations

import progress
import torch
import torch.distributed as dist


def main() -> None:
    rank = progress.start()
    progress.train(10)
    if rank == 0:
        dist.send(torch.ones(4), dst=1, tag=7)
    else:
        dist.recv(torch.zeros(4), src=0, tag=8)
    progress.train(1000)


if __name__ == "__main__":
    main()
