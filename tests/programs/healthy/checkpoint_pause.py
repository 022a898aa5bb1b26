"""Healthy: rank 0 writes a checkpoint for 14 seconds while the others wait at a barrier."""

from __future__ import annotations

import io
import time

import progress
import torch
import torch.distributed as dist


class SlowStorage(io.BytesIO):
    """Takes a file as slowly as a busy shared disk does."""

    seconds = 14.0

    def write(self, data: object) -> int:
        pause, self.seconds = self.seconds, 0.0
        time.sleep(pause)
        return super().write(data)  # type: ignore[arg-type]


def save_checkpoint(rank: int) -> None:
    if rank == 0:
        torch.save({"weights": torch.ones(1024)}, SlowStorage())
    dist.barrier()
    progress.mark()


def main() -> None:
    rank = progress.start()
    progress.train(20)
    save_checkpoint(rank)
    progress.train(20)
    progress.finish()


if __name__ == "__main__":
    main()
