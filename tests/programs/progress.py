"""What the programs share: a line per step on stdout, and ways of not going on.

`mark()` prints `progress <monotonic seconds>`; whoever times a verdict takes the last such line of
all ranks as the moment of last progress, which is independent of what Hangwatch itself measured.
"""

from __future__ import annotations

import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist

# Longer than any test: a collective must wait, not raise.
PATIENCE = timedelta(minutes=30)


def mark() -> None:
    # One write: ranks share a pipe, and print() may split text and newline.
    os.write(1, f"progress {time.monotonic():.3f}\n".encode())


def train(steps: int, step_s: float = 0.1) -> None:
    """A few healthy steps: some work, then an all_reduce over the default group."""
    for _ in range(steps):
        time.sleep(step_s)
        dist.all_reduce(torch.ones(4))
        mark()


def start() -> int:
    """Join the default group as the launcher's environment says; return this rank."""
    dist.init_process_group("gloo", timeout=PATIENCE)
    mark()
    return dist.get_rank()


def finish() -> None:
    """Leave in step, so that no rank closes its sockets while another still needs them."""
    dist.barrier()
    mark()
    dist.destroy_process_group()
