"""Three ranks, a group for each pair: each calls first in the group its neighbour calls last."""

from __future__ import annotations

import progress
import torch
import torch.distributed as dist

PAIRS = ((0, 1), (1, 2), (2, 0))


def main() -> None:
    rank = progress.start()
    groups = [dist.new_group(list(pair), timeout=progress.PATIENCE) for pair in PAIRS]
    progress.train(10)
    dist.all_reduce(torch.ones(4), group=groups[rank])
    dist.all_reduce(torch.ones(4), group=groups[rank - 1])
    progress.train(1000)


if __name__ == "__main__":
    main()
