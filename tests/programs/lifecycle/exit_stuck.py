"""One rank leaves without the last barrier, and its exit waits for a thread that never ends.

`--via atexit`: a function registered for the end uploads logs to a server that never answers.
"""

from __future__ import annotations

import argparse
import atexit
import sys
import threading
import time

import progress
import torch.distributed as dist


def upload_logs() -> None:
    while True:
        time.sleep(60)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--via", choices=("thread", "atexit"), required=True)
    via = parser.parse_args().via
    rank = progress.start()
    progress.train(20)
    if rank == 1:
        if via == "thread":
            threading.Thread(target=upload_logs).start()
        else:
            atexit.register(upload_logs)
        sys.exit(0)
    dist.barrier()


if __name__ == "__main__":
    main()
