"""Healthy: collectives are started in advance and waited for seconds later, several at a time."""

from __future__ import annotations

import progress
import torch
import torch.distributed as dist
import work


def main() -> None:
    rank = progress.start()
    for _ in range(5):
        open_works = [dist.all_reduce(torch.ones(4), async_op=True) for _ in range(4)]
        work.compute(2 + rank)
        for one in open_works:
            assert one is not None
            one.wait()
        progress.mark()
    progress.finish()


if __name__ == "__main__":
    main()
