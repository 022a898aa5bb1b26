"""Healthy: ranks 0 and 1 evaluate in a group of their own; ranks 2 and 3 wait at the barrier."""

from __future__ import annotations

import progress
import torch
import torch.distributed as dist
import work


def evaluate(group: dist.ProcessGroup) -> None:
    for _ in range(4):
        work.compute(6)
        dist.all_reduce(torch.ones(4), group=group)
        progress.mark()


def main() -> None:
    rank = progress.start()
    evaluating = dist.new_group([0, 1], timeout=progress.PATIENCE)
    progress.train(20)
    if rank < 2:
        assert evaluating is not None
        evaluate(evaluating)
    dist.barrier()
    progress.train(20)
    progress.finish()


if __name__ == "__main__":
    main()
