"""One rank waits for a child that never ends: forked, spawned, or another program."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import subprocess
import threading
import time

import progress

cache_lock = threading.Lock()


def keep_lock(has_lock: threading.Event) -> None:
    with cache_lock:
        has_lock.set()
        while True:
            time.sleep(60)


def wait_for_fork() -> None:
    """The child inherits a lock that a thread held during the fork; nobody is there to free it."""
    has_lock = threading.Event()
    threading.Thread(target=keep_lock, args=(has_lock,), daemon=True).start()
    has_lock.wait()
    child = os.fork()
    if child == 0:
        with cache_lock:
            os._exit(0)
    os.waitpid(child, 0)


def download_forever() -> None:
    while True:
        time.sleep(60)


def wait_for_spawned() -> None:
    child = multiprocessing.get_context("spawn").Process(target=download_forever, daemon=True)
    child.start()
    child.join()


def wait_for_program() -> None:
    subprocess.run(["sleep", "3600"], check=True)


WAYS = {"fork": wait_for_fork, "spawn": wait_for_spawned, "program": wait_for_program}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--child", choices=sorted(WAYS), required=True)
    wait = WAYS[parser.parse_args().child]
    rank = progress.start()
    progress.train(10)
    if rank == 2:
        wait()
    progress.train(1000)


if __name__ == "__main__":
    main()
