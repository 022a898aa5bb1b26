"""One rank's main thread wants a lock that its cache thread keeps while it waits for a server."""

from __future__ import annotations

import threading
import time

import progress

cache_lock = threading.Lock()


def refresh_cache(has_lock: threading.Event) -> None:
    with cache_lock:
        has_lock.set()
        while True:
            time.sleep(60)


def read_cache() -> None:
    with cache_lock:
        return


def main() -> None:
    rank = progress.start()
    progress.train(10)
    if rank == 1:
        has_lock = threading.Event()
        threading.Thread(target=refresh_cache, args=(has_lock,), daemon=True).start()
        has_lock.wait()
        read_cache()
    progress.train(1000)


if __name__ == "__main__":
    main()
