"""A rendezvous file left behind by an earlier run whose processes still live.

Rank 1 finds the old rank 0's address in the file, connects to it and believes the group complete;
the new rank 0 waits in init_process_group for a rank 1 that talks to a ghost.
"""

from __future__ import annotations

import os
import tempfile
from multiprocessing.synchronize import Barrier, Event

import progress
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

RANKS = 2


def join_group(rank: int, path: str) -> None:
    dist.init_process_group(
        "gloo",
        init_method=f"file://{path}",
        rank=rank,
        world_size=RANKS,
        timeout=progress.PATIENCE,
    )


def earlier_run(rank: int, path: str, is_up: Barrier) -> None:
    join_group(rank, path)
    is_up.wait()
    is_up.wait()  # never: nobody else comes back


def worker(rank: int, path: str, has_joined_ghost: Event) -> None:
    progress.mark()
    if rank == 0:
        has_joined_ghost.wait()  # it comes a little later, as ranks do
    join_group(rank, path)
    has_joined_ghost.set()
    dist.all_reduce(torch.ones(1))


def main() -> None:
    spawn = mp.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rendezvous")
        is_up = spawn.Barrier(RANKS + 1)
        # The earlier run belongs to somebody who did not watch it.
        os.environ["HANGWATCH_DISABLE"] = "1"
        for rank in range(RANKS):
            spawn.Process(target=earlier_run, args=(rank, path, is_up), daemon=True).start()
        is_up.wait()
        del os.environ["HANGWATCH_DISABLE"]
        mp.spawn(worker, args=(path, spawn.Event()), nprocs=RANKS, join=True)


if __name__ == "__main__":
    main()
