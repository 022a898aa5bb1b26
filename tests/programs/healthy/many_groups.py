"""Healthy: groups are made and destroyed all the time, as by a server of many small requests."""

from __future__ import annotations

import time

import progress
import torch
import torch.distributed as dist


def main() -> None:
    rank = progress.start()
    for request in range(60):
        members = [request % 4, (request + 1) % 4]
        group = dist.new_group(members, timeout=progress.PATIENCE)
        if rank in members:
            dist.all_reduce(torch.ones(4), group=group)
            dist.destroy_process_group(group)
        progress.mark()
        time.sleep(0.3)
    progress.finish()


if __name__ == "__main__":
    main()
