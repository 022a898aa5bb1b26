"""Two ranks at once do not come: one waits for its loader's queue, one looks at samples."""

from __future__ import annotations

import queue
import time

import progress


def look_for_samples() -> None:
    while True:
        time.sleep(60)


def main() -> None:
    rank = progress.start()
    progress.train(10)
    if rank == 1:
        look_for_samples()
    if rank == 2:
        queue.Queue[int]().get()
    progress.train(1000)


if __name__ == "__main__":
    main()
