"""Healthy: the first steps compile the model, and each new input shape compiles it again."""

from __future__ import annotations

import progress
import torch
import torch.distributed as dist


def main() -> None:
    torch._inductor.config.force_disable_caches = True
    torch._dynamo.config.automatic_dynamic_shapes = False
    compiled = torch.compile(torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.GELU()))
    progress.start()
    for length in (2, 3):
        for _ in range(10):
            compiled(torch.ones(length, 16))
            dist.all_reduce(torch.ones(4))
            progress.mark()
    progress.finish()


if __name__ == "__main__":
    main()
