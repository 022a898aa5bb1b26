"""A rank is stopped, goes on after a confirmed hang; later another rank gets stuck for good."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import progress

STOPPED_S = 30


def stop_for_a_while() -> None:
    """A shell lets this process go on: a stopped one cannot."""
    subprocess.Popen(["sh", "-c", f"sleep {STOPPED_S}; kill -CONT {os.getpid()}"])
    os.kill(os.getpid(), signal.SIGSTOP)


def wait_for_operator() -> None:
    while True:
        time.sleep(60)


def main() -> None:
    rank = progress.start()
    progress.train(10)
    if rank == 1:
        stop_for_a_while()
    progress.train(80)
    if rank == 0:
        wait_for_operator()
    progress.train(1000)


if __name__ == "__main__":
    main()
