"""A worker of one rank's process pool is killed with its task; the pool waits for the answer."""

from __future__ import annotations

import multiprocessing
import os
import signal

import progress


def tokenize(shard: int) -> int:
    if shard == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return shard


def main() -> None:
    rank = progress.start()
    progress.train(10)
    if rank == 1:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            pool.map(tokenize, range(4), chunksize=1)
    progress.train(1000)


if __name__ == "__main__":
    main()
