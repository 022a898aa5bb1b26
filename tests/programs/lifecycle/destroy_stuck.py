"""Two ranks leave with a collective still open: destroying the group waits for the third rank."""

from __future__ import annotations

import time

import progress
import torch
import torch.distributed as dist


def write_last_report() -> None:
    while True:
        time.sleep(60)


def main() -> None:
    rank = progress.start()
    progress.train(20)
    if rank == 2:
        write_last_report()
    work = dist.all_reduce(torch.ones(4), async_op=True)
    del work  # nobody waits for it, as for the last logging of a metric
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
