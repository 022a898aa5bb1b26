"""One rank leaves the common path with an all_reduce of integers, which nobody notices.

Eight bytes are eight bytes: the call completes, with nonsense in it. Some steps later the same
branch makes another call than the rest, and there the job hangs.
"""

from __future__ import annotations

import time

import progress
import torch
import torch.distributed as dist

DIVERGES = 8
HANGS = 12


def main() -> None:
    rank = progress.start()
    for step in range(1000):
        time.sleep(0.1)
        is_apart = rank == 2 and step >= DIVERGES
        if is_apart and step == HANGS:
            dist.broadcast(torch.ones(4), src=2)
        dist.all_reduce(torch.ones(4, dtype=torch.int32 if is_apart else torch.float32))
        progress.mark()


if __name__ == "__main__":
    main()
