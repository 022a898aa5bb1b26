"""DDP over two ranks with 5 and 6 inputs, started by torch.multiprocessing.spawn, in six variants.

    1  join()                          both finish
    2  nothing                         rank 1's extra backward waits
    3  barrier in the loop             the same, one barrier later
    4  join() and barrier in the loop  join's own all_reduce meets the barrier
    5  barrier after the loop          rank 0's barrier meets rank 1's extra backward
    6  join(), barrier after           both finish

A rank that is through stays until all are, as a process under NCCL would be left behind: under gloo
its exit would close the sockets and its peers would raise instead of waiting.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import time
from typing import Any

import progress
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel

RANKS = 2
INPUTS = 5


def stay_until_all_are_through(through: Any, rank: int) -> None:
    through[rank] = 1
    while not all(through):
        time.sleep(0.2)


def run_case(model: DistributedDataParallel, case: int, rank: int) -> None:
    inputs = [torch.tensor([1.0]) for _ in range(INPUTS + rank)]
    with model.join() if case in (1, 4, 6) else contextlib.nullcontext():
        for batch in inputs:
            model(batch).sum().backward()
            if case in (3, 4):
                dist.barrier()
            progress.mark()
    if case in (5, 6):
        dist.barrier()
    progress.mark()


def worker(rank: int, case: int, port: int, through: Any) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=RANKS, timeout=progress.PATIENCE)
    model = DistributedDataParallel(torch.nn.Linear(1, 1))
    progress.mark()
    run_case(model, case, rank)
    stay_until_all_are_through(through, rank)
    dist.destroy_process_group()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", type=int, choices=range(1, 7), required=True)
    case = parser.parse_args().case
    through = mp.get_context("spawn").Array("b", RANKS)
    mp.spawn(worker, args=(case, free_port(), through), nprocs=RANKS, join=True)


if __name__ == "__main__":
    main()
