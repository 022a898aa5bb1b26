"""Healthy: rank 0 writes shards for 25 seconds to storage that is slow with each of them."""

from __future__ import annotations

import os
import tempfile
import time

import progress
import torch.distributed as dist


def write_shards(seconds: float) -> None:
    until_s = time.monotonic() + seconds
    with tempfile.NamedTemporaryFile() as shard:
        while time.monotonic() < until_s:
            shard.seek(0)
            shard.write(os.urandom(1 << 20))
            shard.flush()
            os.fsync(shard.fileno())
            time.sleep(0.4)


def main() -> None:
    rank = progress.start()
    progress.train(30)
    if rank == 0:
        write_shards(25)
    dist.barrier()
    progress.train(20)
    progress.finish()


if __name__ == "__main__":
    main()
