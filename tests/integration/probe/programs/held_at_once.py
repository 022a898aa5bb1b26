"""torch.multiprocessing.spawn: rank 1 takes the GIL in C right after init_process_group."""

from __future__ import annotations

import signals
import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank: int) -> None:
    dist.init_process_group(
        "gloo", init_method=f"file://{signals.FOLDER}/store", rank=rank, world_size=2
    )
    if rank == 1:
        signals.hold_interpreter("gate")
    dist.all_reduce(torch.ones(4))
    signals.tell(f"met-{rank}")
    signals.await_signal("leave")


if __name__ == "__main__":
    mp.spawn(work, nprocs=2)
