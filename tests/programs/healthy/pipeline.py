"""Healthy: a pipeline of four stages, each a little slower than the one before it."""

from __future__ import annotations

import time

import progress
import torch
import torch.distributed as dist

MICROBATCHES = 60


def main() -> None:
    rank = progress.start()
    for _ in range(MICROBATCHES):
        activations = torch.ones(4)
        if rank > 0:
            dist.recv(activations, src=rank - 1)
        time.sleep(0.1 * (rank + 1))
        if rank < 3:
            dist.send(activations, dst=rank + 1)
        progress.mark()
    progress.finish()


if __name__ == "__main__":
    main()
