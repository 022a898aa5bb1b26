"""Healthy: a thread of rank 1 computes for 25 seconds; its main thread waits for the result."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import progress
import work


def main() -> None:
    rank = progress.start()
    progress.train(30)
    if rank == 1:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(work.compute, 25).result()
    progress.train(20)
    progress.finish()


if __name__ == "__main__":
    main()
