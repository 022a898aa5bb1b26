"""One rank's loader has no workers: its main thread itself reads what never comes."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import progress
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, IterableDataset


class Records(IterableDataset[torch.Tensor]):
    """Ten samples, then those of a pipe to which nobody writes."""

    def __init__(self, pipe: Path | None) -> None:
        self.pipe = pipe

    def __iter__(self):  # type: ignore[no-untyped-def]
        for _ in range(10):
            yield torch.ones(4)
        if self.pipe is not None:
            self.pipe.read_bytes()
        yield torch.ones(4)


def main() -> None:
    rank = progress.start()
    with tempfile.TemporaryDirectory() as folder:
        pipe = Path(folder) / "records"
        os.mkfifo(pipe)
        for batch in DataLoader(Records(pipe if rank == 1 else None), num_workers=0):
            dist.all_reduce(batch)
            progress.mark()


if __name__ == "__main__":
    main()
