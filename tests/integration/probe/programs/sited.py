"""Two ranks whose calls come from two places, many times; then rank 1 leaves one call out."""

from __future__ import annotations

import signals
import torch
import torch.distributed as dist


def step(tensor: torch.Tensor) -> None:
    dist.all_reduce(tensor)


def metric(tensor: torch.Tensor) -> None:
    dist.all_reduce(tensor)


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    tensor = torch.ones(1)
    for number in range(30):
        step(tensor)
        if rank == 0 or number != 25:
            metric(tensor)
    signals.tell(f"ready-{rank}")
    if rank == 0:
        signals.await_signal("leave")
    dist.barrier()


main()
