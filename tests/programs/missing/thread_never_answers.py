"""One rank's main thread waits for its prefetching thread, which has ended without an answer."""

from __future__ import annotations

import argparse
import queue
import threading

import progress


def prefetch() -> None:
    """Ends at once, without a batch: as after an error that nobody sees."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--through", choices=["queue", "event"], required=True)
    through = parser.parse_args().through
    rank = progress.start()
    progress.train(10)
    if rank == 1:
        batches: queue.Queue[int] = queue.Queue()
        has_batch = threading.Event()
        threading.Thread(target=prefetch).start()
        if through == "queue":
            batches.get()
        has_batch.wait()
    progress.train(1000)


if __name__ == "__main__":
    main()
