"""Each attempt stands still at the same step until the group's own timeout ends it.

The timeout is shorter than what confirms a hang: only that it repeats shows that it is one.
"""

from __future__ import annotations

import time
from datetime import timedelta

import progress
import torch.distributed as dist

TIMEOUT = timedelta(seconds=12)


def read_broken_shard() -> None:
    while True:
        time.sleep(60)


def main() -> None:
    dist.init_process_group("gloo", timeout=TIMEOUT)
    progress.mark()
    progress.train(10)
    if dist.get_rank() == 1:
        read_broken_shard()
    progress.train(1000)


if __name__ == "__main__":
    main()
