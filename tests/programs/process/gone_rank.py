"""One rank's process ends while the others wait for it: killed, crashed, left, raised."""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import sys

import left_alone
import progress


def end(how: str) -> None:
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "segfault":
        ctypes.string_at(0)
    if how == "exit":
        sys.exit(3)
    raise RuntimeError("the loss is not a number")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--how", choices=("kill", "segfault", "exit", "raise"), required=True)
    parser.add_argument("--zombie", action="store_true", help="the launcher does not reap it")
    options = parser.parse_args()
    if left_alone.is_launcher():
        left_alone.launch(3, reaps=not options.zombie)
        return
    rank = progress.start()
    progress.train(10)
    if rank == 1:
        left_alone.leave_connections_open()
        end(options.how)
    progress.train(1000)


if __name__ == "__main__":
    main()
