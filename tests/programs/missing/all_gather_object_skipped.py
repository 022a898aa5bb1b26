"""One rank does not call all_gather_object: it takes the branch without metrics to share."""

from __future__ import annotations

import time

import progress
import torch.distributed as dist


def write_report() -> None:
    while True:
        time.sleep(60)


def main() -> None:
    rank = progress.start()
    progress.train(10)
    if rank == 2:
        write_report()
    metrics: list[object] = [None] * dist.get_world_size()
    dist.all_gather_object(metrics, {"rank": rank})


if __name__ == "__main__":
    main()
