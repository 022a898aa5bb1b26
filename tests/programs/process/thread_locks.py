"""One rank's main thread waits for another of its threads: a cycle of locks, a dead producer."""

from __future__ import annotations

import argparse
import queue
import threading
import time

import progress

index_lock = threading.Lock()
cache_lock = threading.Lock()


def refresh(has_cache: threading.Event) -> None:
    with cache_lock:
        has_cache.set()
        with index_lock:
            return


def read_index() -> None:
    """Takes the locks in the opposite order of `refresh`."""
    has_cache = threading.Event()
    with index_lock:
        threading.Thread(target=refresh, args=(has_cache,), daemon=True).start()
        has_cache.wait()
        cache_lock.acquire()


def produce(batches: queue.Queue[int]) -> None:
    batches.put(1)
    time.sleep(0.1)  # and ends without a word, as a thread does whose exception nobody sees


def next_batches() -> None:
    batches: queue.Queue[int] = queue.Queue()
    threading.Thread(target=produce, args=(batches,), daemon=True).start()
    while True:
        batches.get()


WAYS = {"cycle": read_index, "producer": next_batches}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--wait", choices=sorted(WAYS), required=True)
    wait = WAYS[parser.parse_args().wait]
    rank = progress.start()
    progress.train(10)
    if rank == 1:
        wait()
    progress.train(1000)


if __name__ == "__main__":
    main()
