"""A mesh of tensor, data and pipeline groups: one rank stands still, and the stall reaches all.

Each step: all_reduce over the tensor group, activations along the pipeline, all_reduce over the
data group. So every rank waits in its own place, most of them for ranks that only wait themselves.
"""

from __future__ import annotations

import time

import progress
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

CULPRIT = 5
SHAPE = {"pp": 2, "dp": 2, "tp": 2}


def compute_layer() -> None:
    while True:
        time.sleep(60)


def pass_on(group: dist.ProcessGroup) -> None:
    """Activations from the first stage of the pipeline to the second."""
    first, second = dist.get_process_group_ranks(group)
    if dist.get_rank() == first:
        dist.send(torch.ones(4), dst=second, group=group)
    else:
        dist.recv(torch.zeros(4), src=first, group=group)


def main() -> None:
    rank = progress.start()
    mesh = init_device_mesh("cpu", tuple(SHAPE.values()), mesh_dim_names=tuple(SHAPE))
    tensor, data, pipeline = (mesh.get_group(name) for name in ("tp", "dp", "pp"))
    for step in range(1000):
        time.sleep(0.1)
        if rank == CULPRIT and step == 20:
            compute_layer()
        dist.all_reduce(torch.ones(4), group=tensor)
        pass_on(pipeline)
        dist.all_reduce(torch.ones(4), group=data)
        progress.mark()


if __name__ == "__main__":
    main()
