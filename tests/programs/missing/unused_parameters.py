"""One rank's forward leaves out a layer, so DistributedDataParallel never gets its gradient there.

Its reduction of that bucket is never started: the others wait for it in backward, while the rank
itself goes on to its next batch, which does not come.
"""

from __future__ import annotations

import time

import progress
import torch
from torch.nn.parallel import DistributedDataParallel


class Branches(torch.nn.Module):
    """Two layers, of which the second may be skipped."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        self.second = torch.nn.Linear(4, 4)

    def forward(self, batch: torch.Tensor, is_short: bool) -> torch.Tensor:
        hidden = self.first(batch)
        return hidden if is_short else self.second(hidden)


def next_batch(is_last: bool) -> torch.Tensor:
    while is_last:
        time.sleep(60)
    return torch.ones(2, 4)


def main() -> None:
    rank = progress.start()
    model = DistributedDataParallel(Branches())
    for step in range(14):
        batch = next_batch(is_last=rank == 1 and step == 12)
        model(batch, is_short=rank == 1 and step == 11).sum().backward()
        progress.mark()


if __name__ == "__main__":
    main()
