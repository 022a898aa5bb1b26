"""A pipeline's last stage waits to receive what the stage before it never sends."""

from __future__ import annotations

import time

import progress
import torch
import torch.distributed as dist


def compute_activations() -> None:
    while True:
        time.sleep(60)


def main() -> None:
    rank = progress.start()
    activations = torch.ones(4)
    for step in range(12):
        if rank == 0:
            if step == 11:
                compute_activations()
            dist.send(activations, dst=1)
        else:
            dist.recv(activations, src=0)
        progress.mark()


if __name__ == "__main__":
    main()
