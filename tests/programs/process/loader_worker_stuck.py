"""One rank waits for a loader worker that is stopped, killed, or in uninterruptible sleep.

A killed worker makes the loader raise: that rank is gone, and the others wait for it.
"""

from __future__ import annotations

import argparse
import os
import signal

import left_alone
import progress
import torch
import torch.distributed as dist
import uninterruptible
from torch.utils.data import DataLoader, Dataset

RANKS = 3


class Samples(Dataset[torch.Tensor]):
    """Sixteen samples; at the twelfth the worker of one rank meets its fate."""

    def __init__(self, fate: str) -> None:
        self.fate = fate
        self.library = uninterruptible.library() if fate == "uninterruptible" else None

    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> torch.Tensor:
        if index == 12 and self.fate == "stopped":
            os.kill(os.getpid(), signal.SIGSTOP)
        if index == 12 and self.fate == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if index == 12 and self.library is not None:
            self.library.wait_for_child()
        return torch.ones(4)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--fate", choices=("stopped", "killed", "uninterruptible"), required=True)
    fate = parser.parse_args().fate
    if left_alone.is_launcher():
        left_alone.launch(RANKS)
        return
    rank = progress.start()
    if rank == 1 and fate == "killed":
        left_alone.leave_connections_open()
    loader = DataLoader(Samples(fate if rank == 1 else ""), num_workers=1, prefetch_factor=2)
    for batch in loader:
        dist.all_reduce(batch)
        progress.mark()


if __name__ == "__main__":
    main()
