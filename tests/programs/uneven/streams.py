"""Each rank trains until its own stream of inputs ends, and the streams are not equally long.

A rank that is through returns from main; its uploading thread, which is no daemon, keeps the
process alive, as a rank under NCCL would stay until its communicator is gone.
"""

from __future__ import annotations

import argparse
import threading
import time

import progress
import torch
import torch.distributed as dist


def upload_model() -> None:
    while True:
        time.sleep(60)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--inputs", type=int, nargs="+", required=True, help="one number per rank")
    inputs = parser.parse_args().inputs
    rank = progress.start()
    dist.barrier()
    for _ in range(inputs[rank]):
        time.sleep(0.1)
        dist.all_reduce(torch.ones(4))
        progress.mark()
    threading.Thread(target=upload_model).start()


if __name__ == "__main__":
    main()
