"""One rank makes one all_reduce too few or too many; it shows only at the barrier of the epoch.

All calls before it look alike, so the ranks pair up wrongly and go on: the third all_reduce of one
is the fourth of another. `--step` is the step in which it happens, of five.
"""

from __future__ import annotations

import argparse
import time

import progress
import torch
import torch.distributed as dist

STEPS = 5


def train_step(times_metric: int) -> None:
    time.sleep(0.1)
    dist.all_reduce(torch.ones(4))  # loss
    dist.all_reduce(torch.ones(4))  # norm of the gradients
    for _ in range(times_metric):
        dist.all_reduce(torch.ones(4))  # metric
    progress.mark()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--call", choices=["skipped", "extra"], required=True)
    parser.add_argument("--step", type=int, choices=range(STEPS), required=True)
    parser.add_argument("--rank", type=int, required=True)
    asked = parser.parse_args()
    rank = progress.start()
    for step in range(STEPS):
        is_wrong = rank == asked.rank and step == asked.step
        times = {"skipped": 0, "extra": 2}[asked.call] if is_wrong else 1
        train_step(times)
    dist.barrier()
    progress.train(1000)


if __name__ == "__main__":
    main()
