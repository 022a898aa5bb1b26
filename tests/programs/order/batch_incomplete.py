"""Three ranks exchange halos with batch_isend_irecv; one does not come to the last exchange."""

from __future__ import annotations

import time

import progress
import torch
import torch.distributed as dist


def exchange(rank: int) -> None:
    size = dist.get_world_size()
    halo = [
        dist.P2POp(dist.isend, torch.ones(4), (rank + 1) % size),
        dist.P2POp(dist.irecv, torch.zeros(4), (rank - 1) % size),
    ]
    for work in dist.batch_isend_irecv(halo):
        work.wait()


def solve_locally() -> None:
    while True:
        time.sleep(60)


def main() -> None:
    rank = progress.start()
    for step in range(20):
        time.sleep(0.1)
        if rank == 2 and step == 15:
            solve_locally()
        exchange(rank)
        progress.mark()


if __name__ == "__main__":
    main()
