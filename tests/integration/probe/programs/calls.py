"""Two ranks: all kinds of calls, a group made twice, loader workers; then rank 0 waits in recv."""

from __future__ import annotations

import sys

import signals
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader


class Numbers(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        return index


def point_to_point(rank: int) -> None:
    tensor = torch.ones(4)
    if rank == 0:
        dist.send(tensor, 1, tag=5)
    else:
        dist.recv(tensor, 0, tag=5)
    peer = 1 - rank
    operations = [
        dist.P2POp(dist.isend, tensor, peer),
        dist.P2POp(dist.irecv, torch.ones(4), peer),
    ]
    for work in dist.batch_isend_irecv(operations):
        work.wait()


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    tensor = torch.ones(4)
    short_lived = dist.new_group([0, 1])
    dist.all_reduce(tensor, group=short_lived)
    for _ in range(3):
        dist.all_reduce(tensor)
    point_to_point(rank)
    dist.monitored_barrier()
    dist.broadcast(tensor, 0)
    dist.all_gather_object([None, None], {"rank": rank})
    workers = iter(DataLoader(Numbers(), num_workers=2, multiprocessing_context="fork"))
    next(workers)
    signals.tell(f"ready-{rank}")
    if rank == 0:
        dist.recv(tensor, 1, tag=9)
    else:
        signals.await_signal("go")
        dist.send(tensor, 0, tag=9)
    # The second time around the names start again from "0": the epoch tells them apart.
    dist.destroy_process_group()
    dist.init_process_group(
        "gloo", init_method=f"file://{signals.FOLDER}/store", rank=rank, world_size=2
    )
    dist.all_reduce(tensor)
    signals.tell(f"again-{rank}")
    signals.await_signal("leave")
    dist.destroy_process_group()
    sys.exit(0)


main()
