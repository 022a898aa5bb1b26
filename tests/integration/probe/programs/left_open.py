"""Two ranks: rank 0 destroys the group with a collective open that rank 1 does not come to."""

from __future__ import annotations

import signals
import torch
import torch.distributed as dist


def main() -> None:
    dist.init_process_group("gloo")
    tensor = torch.ones(4)
    for _ in range(5):
        dist.all_reduce(tensor)
    if dist.get_rank() == 1:
        signals.await_signal("go")
        dist.all_reduce(tensor)
    else:
        work = dist.all_reduce(tensor, async_op=True)
        del work
    dist.destroy_process_group()
    signals.tell("out")
    signals.await_signal("leave")


main()
