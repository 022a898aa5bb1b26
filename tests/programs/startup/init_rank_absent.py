"""The world is one rank larger than what was started: nobody is there to be the last rank."""

from __future__ import annotations

import os

import progress
import torch.distributed as dist


def main() -> None:
    world_size = int(os.environ["WORLD_SIZE"]) + 1
    progress.mark()
    dist.init_process_group(
        "gloo", rank=int(os.environ["RANK"]), world_size=world_size, timeout=progress.PATIENCE
    )


if __name__ == "__main__":
    main()
