"""torch.multiprocessing.spawn: rank 1 holds the GIL in C while rank 0 waits; then rank 1 raises."""

from __future__ import annotations

import signals
import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank: int) -> None:
    dist.init_process_group(
        "gloo", init_method=f"file://{signals.FOLDER}/store", rank=rank, world_size=2
    )
    tensor = torch.ones(4)
    dist.all_reduce(tensor)
    signals.tell(f"ready-{rank}")
    signals.await_signal("hold")
    if rank == 1:
        signals.tell("holding")
        signals.hold_interpreter("gate")
    dist.all_reduce(tensor)
    signals.tell(f"met-{rank}")
    if rank == 1:
        raise SystemExit(4)
    signals.await_signal("leave")


if __name__ == "__main__":
    mp.spawn(work, nprocs=2)
